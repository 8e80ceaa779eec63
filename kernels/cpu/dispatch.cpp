#include "dispatch.h"

#include <stdexcept>

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
        found.push_back({"avx512", step_avx512, probe_avx512, 16});
    }
    if (avx2) found.push_back({"avx2", step_avx2, probe_avx2, 8});
#endif
    found.push_back({"portable", step_portable, probe_portable, 16});
    return found;
}

Isa choose_isa(const std::string& name) {
    const std::vector<Isa> isas = detect_isas();
    std::string names;
    for (const Isa& isa : isas) {
        if (name.empty() || name == isa.name) return isa;
        names += " " + std::string(isa.name);
    }
    throw std::invalid_argument("instruction set '" + name +
                                "' is not one of this machine's:" + names);
}

}  // namespace sglite
