/* contract.c - serving the contract from the binary (see contract.h). */
#include "server/contract.h"

#include "server/answer.h"
#include "server/exchange.h"

/* As console.c takes the page's files in; server/CMakeLists.txt has this compiled again when one of
 * them changes. */
#define EMBED(symbol, path)                                                             \
    __asm__(".pushsection .rodata\n"                                                    \
            "contract_" #symbol "_file:\n"                                              \
            ".incbin \"" CONTRACT_FOLDER "/" path "\"\n"                                \
            "contract_" #symbol "_end:\n"                                               \
            ".byte 0\n"                                                                 \
            ".popsection\n");                                                           \
    extern const char contract_##symbol##_file[] __attribute__((visibility("hidden"))); \
    extern const char contract_##symbol##_end[] __attribute__((visibility("hidden")));
EMBED(yaml, "openapi.yaml")
EMBED(json, "openapi.json")
#undef EMBED

const char *contract_json_text(size_t *ret_size)
{
    *ret_size = (size_t)(contract_json_end - contract_json_file);
    return contract_json_file;
}

static enum error send_text(struct exchange *exchange, const char *type, const char *data,
                            size_t size)
{
    struct answer answer = {.status = 200, .content_type = type};
    answer_header(&answer, "Cache-Control", "no-cache"); /* ask each time: a new binary is seen */
    text_clear(&exchange->out);
    text_append(&exchange->out, data, size);
    return answer_send(exchange, &answer);
}

enum error contract_yaml(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    return send_text(exchange, "application/yaml", contract_yaml_file,
                     (size_t)(contract_yaml_end - contract_yaml_file));
}

enum error contract_json(struct exchange *exchange, struct problem *problem)
{
    size_t size;
    const char *text = contract_json_text(&size);
    (void)problem;
    return send_text(exchange, "application/json", text, size);
}
