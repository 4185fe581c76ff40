"""Reads Prometheus' text format as strictly as a scraper might, and what its conventions ask for."""

import re

NAME = r"[a-z_][a-z0-9_]*"
LABEL = rf'{NAME}="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d+(?:\.\d+)?)")


def unescape(value):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value)


def read_labels(text):
    found = re.findall(rf'({NAME})="((?:[^"\\]|\\.)*)"', text or "")
    labels = {name: unescape(value) for name, value in found}
    assert len(labels) == len(found), f"a label is given twice: {text}"
    return labels


class Exposition:
    """families: {name: type}; samples: {(name, ((label, value), ...)): text of the number}."""

    def __init__(self, text):
        assert text.endswith("\n")
        self.families, self.samples = {}, {}
        lines = iter(text.split("\n")[:-1])
        for line in lines:
            if line.startswith("# HELP "):
                self._begin_family(line, next(lines))
            else:
                self._add_sample(line)
        for name, kind in self.families.items():
            assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"

    def _begin_family(self, help_line, type_line):
        name = re.fullmatch(rf"# HELP ({NAME}) \S.*\.", help_line)[1]
        kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", type_line)
        assert kind, f"{help_line!r} is followed by {type_line!r}"
        assert name not in self.families, f"{name} is there twice"
        self.families[name] = kind[1]
        self._family = name

    def _add_sample(self, line):
        found = SAMPLE.fullmatch(line)
        assert found, f"not a sample: {line!r}"
        name, kind = found[1], self.families[self._family]
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert name in [self._family + suffix for suffix in suffixes], f"{line} in {self._family}"
        key = (name, tuple(sorted(read_labels(found[2]).items())))
        assert key not in self.samples, f"twice: {line}"
        self.samples[key] = found[3]

    def get(self, name, **labels):
        """A sample's value; a series that is not there yet is 0."""
        return float(self.samples.get((name, tuple(sorted(labels.items()))), 0))

    def series(self, name):
        """[(labels, value)] of one name."""
        return [(dict(key), float(v)) for (n, key), v in self.samples.items() if n == name]

    def total(self, name):
        return sum(value for _, value in self.series(name))

    def buckets(self, name, **labels):
        """[(bound, count)] of a histogram, in its order."""
        return [
            (float(found["le"]), value)
            for found, value in self.series(f"{name}_bucket")
            if labels.items() <= found.items()
        ]
