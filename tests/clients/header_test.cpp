// dotd.h is C++ as well, alone in its file.
#include "dotd.h"

#include <cstdio>
#include <type_traits>

static_assert(std::is_standard_layout<dotd_result>::value, "what C has");

int main()
{
    std::printf("%zu\n", dotd_size(DOTD_FLOAT32));
    return dotd_size(DOTD_COMPLEX128) == 16 && dotd_size(DOTD_DEFAULT) == 0 ? 0 : 1;
}
