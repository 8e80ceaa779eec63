#include "dispatch.h"

namespace sglite {

std::vector<Isa> detect_isas() {
    std::vector<Isa> found;
#if defined(SGLITE_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni")) {
        found.push_back({"avx512", step_avx512});
    }
    if (avx2) found.push_back({"avx2", step_avx2});
#endif
    found.push_back({"portable", step_portable});
    return found;
}

}  // namespace sglite
