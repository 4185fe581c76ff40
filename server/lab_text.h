/* lab_text.h - the answers of the lab as JSON, one writer an experiment.
 *
 * Written directly and not through a document: a trace is some hundred thousand numbers. They are
 * the shortest that read back to the same bits of the element type; those that are not finite are
 * strings, "NaN", "Infinity" and "-Infinity", because null says that nobody wrote a cell.
 * text->failed tells of no memory.
 */
#ifndef SERVER_LAB_TEXT_H
#define SERVER_LAB_TEXT_H

#include "gpu/lab/experiments.h"
#include "proto/text.h"

void lab_text_reduce(struct text *text, const struct lab_device *device,
                     const struct lab_reduce_ask *ask, const struct lab_reduce *reduce);
void lab_text_race(struct text *text, const struct lab_device *device,
                   const struct lab_race_ask *ask, const struct lab_race *race);
void lab_text_shift(struct text *text, const struct lab_device *device,
                    const struct lab_shift_ask *ask, const struct lab_shift *shift);
void lab_text_barrier(struct text *text, const struct lab_device *device,
                      const struct lab_barrier_ask *ask, const struct lab_barrier *barrier);
void lab_text_rounding(struct text *text, const struct lab_device *device,
                       const struct lab_rounding_ask *ask, const struct lab_rounding *rounding);
void lab_text_measure(struct text *text, const struct lab_device *device,
                      const struct lab_measure_ask *ask, const struct lab_measure *measure);

#endif
