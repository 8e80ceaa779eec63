#include "simd_portable.h"

// The kernels are written once, over the vectors of the header above.
#include "kernel_probe.h"
#include "kernel_step.h"

namespace sglite {

void step_portable(const Step& step, Phases& phases) { StepThread(step, phases).run(); }

void probe_portable(const Probe& probe, Phases& phases) { ProbeThread(probe, phases).run(); }

}  // namespace sglite
