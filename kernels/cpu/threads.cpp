#include "threads.h"

#include "step.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif
#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <climits>
#endif

namespace sglite {
namespace {

constexpr int kFirstSpins = 100;  // a microsecond or two, the usual wait
constexpr int kSpins = 4000;      // some 50 microseconds, far above it

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

// std::atomic::wait yields before it sleeps. Where others compete for the core a yield gives away
// a whole time slice, at whose end nothing wakes the thread.
void sleep_while(std::atomic<uint32_t>& number, uint32_t value) {
#if defined(__linux__)
    syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
    number.wait(value);
#endif
}

int current_core() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;  // not known
#endif
}

void wake_all(std::atomic<uint32_t>& number) {
#if defined(__linux__)
    syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#else
    number.notify_all();
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

// Either the sleeper is counted before this looks, or it finds the new number: both sides write
// one and then read the other, sequentially consistent.
void ThreadPool::Gate::advance() {
    number.fetch_add(1);
    if (sleepers.load() > 0) wake_all(number);
}

void ThreadPool::Gate::sleep(uint32_t passed) {
    sleepers.fetch_add(1);
    while (number.load() == passed) sleep_while(number, passed);
    sleepers.fetch_sub(1);
}

bool ThreadPool::Gate::spin(uint32_t passed, int spins) const {
    for (int i = 0; i < spins; ++i) {
        if (number.load(std::memory_order_acquire) != passed) return true;
        relax();
    }
    return false;
}

ThreadPool::ThreadPool(int threads)
    : threads_(threads), owner_(process_id()), shares_(new Share[threads]) {
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
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        call_.advance();
    }
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(const Job& job) {
    const uint32_t first = phase_.number.load(std::memory_order_acquire);
    if (!workers_.empty()) {
        {
            const std::lock_guard lock(mutex_);
            job_ = job;
            first_ = first;
        }
        call_.advance();
    }
    Phases phases(*this, 0, first);
    job.walk(job, phases);
}

void ThreadPool::work(int thread) {
    for (uint32_t seen = 0;;) {
        call_.sleep(seen);
        Job job;
        uint32_t first;
        {
            const std::lock_guard lock(mutex_);
            if (stopped_) return;
            seen = call_.number.load();
            job = job_;
            first = first_;
        }
        Phases phases(*this, thread, first);
        job.walk(job, phases);
    }
}

int Phases::claim() {
    const int threads = pool_.size();
    for (int i = 0; i < threads; ++i) {
        const int owner = thread_ + i < threads ? thread_ + i : thread_ + i - threads;
        const auto begin = static_cast<uint32_t>(static_cast<int64_t>(chunks_) * owner / threads);
        const auto end =
            static_cast<uint32_t>(static_cast<int64_t>(chunks_) * (owner + 1) / threads);
        std::atomic<uint64_t>& taken = pool_.shares_[owner].taken;
        uint64_t seen = taken.load(std::memory_order_relaxed);
        while (begin + static_cast<uint32_t>(seen) < end) {
            if (seen >> 32 != phase_) return -1;
            if (taken.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
                if (claimed_++ == 0) {
                    pool_.shares_[thread_].core.store(current_core(), std::memory_order_relaxed);
                }
                return static_cast<int>(begin + static_cast<uint32_t>(seen));
            }
        }
    }
    return -1;
}

// Whether a thread that holds chunks waits for just the core that this one runs on.
bool Phases::blocks_another() const {
    const int core = current_core();
    for (int i = 0; core >= 0 && i < pool_.size(); ++i) {
        if (pool_.shares_[i].core.load(std::memory_order_relaxed) == core) return true;
    }
    return false;
}

void Phases::leave() {
    if (claimed_ > 0) pool_.shares_[thread_].core.store(-1, std::memory_order_relaxed);
    // Without a chunk the phase may be over, and done_ that of another one.
    if (claimed_ > 0 &&
        pool_.done_.fetch_add(claimed_, std::memory_order_acq_rel) + claimed_ == chunks_) {
        // Nobody holds a chunk, and none can be claimed before the shares carry the next number.
        pool_.done_.store(0, std::memory_order_relaxed);
        for (int i = 0; i < pool_.size(); ++i) {
            pool_.shares_[i].taken.store(static_cast<uint64_t>(phase_ + 1u) << 32,
                                         std::memory_order_relaxed);
        }
        pool_.phase_.advance();
    } else {
        ThreadPool::Gate& gate = pool_.phase_;
        if (!gate.spin(phase_, kFirstSpins) && (blocks_another() || !gate.spin(phase_, kSpins))) {
            gate.sleep(phase_);
        }
    }
    ++phase_;
}

int phase_thread(const Phases& phases) { return phases.thread(); }
int phase_threads(const Phases& phases) { return phases.threads(); }
void phase_enter(Phases& phases, int chunks) { phases.enter(chunks); }
int phase_claim(Phases& phases) { return phases.claim(); }
void phase_leave(Phases& phases) { phases.leave(); }

}  // namespace sglite
