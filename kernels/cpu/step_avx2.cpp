#include "simd_avx2.h"

// The kernels are written once, over the vectors of the header above.
#include "kernel_probe.h"
#include "kernel_step.h"

namespace sglite {

void step_avx2(const Step& step, Phases& phases) { StepThread(step, phases).run(); }

void probe_avx2(const Probe& probe, Phases& phases) { ProbeThread(probe, phases).run(); }

}  // namespace sglite
