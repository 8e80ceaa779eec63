// One thread's way through a probe.
#pragma once

#include "kernel_matmul.h"
#include "kernel_phases.h"
#include "probe.h"

namespace sglite {
namespace {

constexpr int kProbeChains = 12;  // more than the latency of a dot times its units

class ProbeThread : PhaseWalk {
  public:
    ProbeThread(const Probe& probe, Phases& phases) : PhaseWalk(phases), p_(probe) {}

    void run() {
        switch (p_.kind) {
            case ProbeKind::Quantise:
                return quantise_all();
            case ProbeKind::Product:
                return product();
            case ProbeKind::Dots:
                return dots();
            case ProbeKind::Read:
                return read();
        }
    }

  private:
    void quantise_all() {
        Need need;
        need.by(*p_.model, p_.matrix);
        token_phase(p_.tokens, [&](int t) {
            const float* x = p_.x + static_cast<size_t>(t) * p_.matrix.cols;
            emit(x, p_.matrix.cols, p_.input, t, 0, need);
        });
    }

    void product() {
        const size_t rows = static_cast<size_t>(p_.matrix.rows);
        product_phase(
            p_.matrix.panels(), kMostPanels, p_.tokens, [] {},
            [&](Range panels, Range tokens) {
                multiply_panels(*p_.model, p_.matrix, panels.begin, panels.end,
                                from_token(p_.input, tokens.begin), tokens.end - tokens.begin,
                                p_.out + tokens.begin * rows + panels.begin * kPanelRows, rows);
            });
    }

    void dots() {
        phase(
            kProbeChunks, [] {},
            [&](int chunk) {
                uint8_t* mine = p_.unused + chunk * kCacheLine;
                const Codes codes = load_codes(mine);
                const int8_t* x = reinterpret_cast<const int8_t*>(mine);
                I acc[kProbeChains];
                for (I& one : acc) one = int_set1(0);
#pragma GCC unroll 8
                for (int i = 0; i < kProbeDots / kProbeChains; ++i) {
#pragma GCC unroll 12
                    for (int c = 0; c < kProbeChains; ++c) acc[c] = dot_small(acc[c], codes, x);
                }
                F sum = zero();
                for (const I& one : acc) sum = add(sum, to_float(one));
                store(reinterpret_cast<float*>(mine), sum);
            });
    }

    void read() {
        constexpr int kStep = 4 * static_cast<int>(sizeof(Codes));
        const size_t bytes = p_.matrix.panels() * p_.matrix.panel_stride / kStep;
        phase(
            kProbeChunks, [] {},
            [&](int chunk) {
                const uint8_t* at = p_.matrix.data + bytes * chunk / kProbeChunks * kStep;
                const uint8_t* end = p_.matrix.data + bytes * (chunk + 1) / kProbeChunks * kStep;
                Codes all[4] = {code_zero(), code_zero(), code_zero(), code_zero()};
                for (; at < end; at += kStep) {
                    prefetch<kStep>(at + kPrefetch);
#pragma GCC unroll 4
                    for (int i = 0; i < 4; ++i) {
                        all[i] = put_bits<0>(all[i], load_codes(at + i * sizeof(Codes)), 255);
                    }
                }
                for (int i = 1; i < 4; ++i) all[0] = put_bits<0>(all[0], all[i], 255);
                memcpy(p_.unused + chunk * kCacheLine, &all[0], sizeof(Codes));
            });
    }

    const Probe& p_;
};

}  // namespace
}  // namespace sglite
