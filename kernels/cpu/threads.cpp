#include "threads.h"

#include "step.h"

#if !defined(_WIN32)
#include <unistd.h>
#endif

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace sglite {
namespace {

constexpr int kSpins = 4000;  // some 50 microseconds, far above the usual wait

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

long process_id() {
#if defined(_WIN32)
    return 0;  // no fork
#else
    return static_cast<long>(getpid());
#endif
}

}  // namespace

void Barrier::wait() {
    if (threads_ == 1) return;
    const int generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
        arrived_.store(0, std::memory_order_relaxed);
        generation_.store(generation + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; generation_.load(std::memory_order_acquire) == generation;) {
        if (spins < kSpins) {
            ++spins;
            relax();
        } else {
            std::this_thread::yield();
        }
    }
}

void barrier_wait(Barrier& barrier) { barrier.wait(); }
int counter_take(Counter* counters, int index) { return counters[index].take(); }

ThreadPool::ThreadPool(int threads) : barrier_(threads), owner_(process_id()) {
    workers_.reserve(threads - 1);
    try {
        for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {
        stop();
        throw;
    }
}

void ThreadPool::stop() {
    if (process_id() != owner_) {
        // The child of a fork has this object, but not its threads: joining would never end.
        for (std::thread& worker : workers_) worker.detach();
        return;
    }
    stop_.store(true);
    call_.fetch_add(1);
    call_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Job job, void* argument) {
    job_ = job;
    argument_ = argument;
    if (!workers_.empty()) {
        call_.fetch_add(1, std::memory_order_release);
        call_.notify_all();
    }
    job(argument, 0);
    barrier_.wait();  // nobody may still read `argument` when this returns
}

void ThreadPool::work(int thread) {
    for (int seen = 0;; ++seen) {
        call_.wait(seen, std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed)) return;
        job_(argument_, thread);
        barrier_.wait();
    }
}

}  // namespace sglite
