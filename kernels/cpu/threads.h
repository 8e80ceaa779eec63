// The thread pool of a model, and the phases in which its threads share a run.
//
// A run is a fixed row of phases, and a phase is a number of chunks of work that do not depend on
// each other. Threads claim chunks; a phase ends when all its chunks are finished, not when all
// threads have come, so a thread that the system has taken off its core holds the others up only
// while it holds a chunk. The invariant that makes this safe:
//
//     A thread touches the data of a run only between a claim() that gave it a chunk and the
//     leave() that reports it finished. Until then the phase is open, and nothing that its chunks
//     read changes or goes away.
//
// Phases are numbered through all runs of a pool. A claim succeeds only on counters that carry the
// number of the claiming thread's phase, so a thread that comes back late, even in a later run,
// claims nothing, walks through the phases that are over and is at the end of its run. (The
// numbers repeat after 2^32 phases, some twenty hours of steps; a thread would have to sleep just
// that long.)
//
// What a chunk has written is seen by the next phase: leave() releases it to done_, the thread that
// reports last acquires it there and releases all of it with phase_, which every thread acquires
// before it enters the next phase.
#pragma once

#include <stdint.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sglite {

class Phases;

class ThreadPool {
  public:
    // Throws std::system_error where the system gives no more threads.
    explicit ThreadPool(int threads);
    ~ThreadPool() { stop(); }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return threads_; }

    // Calls walk(argument, phases) on the calling thread and on all others that come in time, each
    // with a copy of `argument`; returns when the last phase is over. `walk` captures nothing. Each
    // thread must walk through the same phases, and may follow pointers in `argument` to what the
    // run alone keeps alive only in chunks that it has claimed.
    template <class Argument, class Walk>
    void run(const Argument& argument, Walk) {
        static_assert(std::is_trivially_copyable_v<Argument> && std::is_empty_v<Walk>);
        static_assert(sizeof(Argument) <= sizeof(Job::argument));
        Job job;
        job.walk = [](const Job& all, Phases& phases) {
            Argument own;
            memcpy(&own, all.argument, sizeof own);
            Walk()(own, phases);
        };
        memcpy(job.argument, &argument, sizeof argument);
        start(job);
    }

  private:
    friend class Phases;

    struct Job {
        void (*walk)(const Job&, Phases&) = nullptr;
        alignas(16) unsigned char argument[512];
    };

    // A number that threads wait on, and whether any of them sleeps.
    struct alignas(64) Gate {
        std::atomic<uint32_t> number{0};
        std::atomic<int> sleepers{0};
        void advance();
        // Both wait for another number than `passed`; spin gives up after `spins` looks.
        bool spin(uint32_t passed, int spins) const;
        void sleep(uint32_t passed);
    };
    struct alignas(64) Share {
        // Of the chunks that a thread claims before it helps others: phase << 32 | how many are
        // taken.
        std::atomic<uint64_t> taken{0};
        // Where the thread runs while it holds chunks, otherwise -1.
        std::atomic<int> core{-1};
    };

    void start(const Job& job);
    void work(int thread);
    void stop();

    const int threads_;
    const long owner_;  // the process that has the threads
    Gate phase_;
    alignas(64) std::atomic<int> done_{0};  // finished chunks of the open phase
    std::unique_ptr<Share[]> shares_;

    Gate call_;  // counts runs
    std::mutex mutex_;
    Job job_;             // under mutex_, as the next two
    uint32_t first_ = 0;  // phase of the run
    bool stopped_ = false;
    std::vector<std::thread> workers_;
};

// One thread's way through the phases of a run.
class Phases {
  public:
    Phases(ThreadPool& pool, int thread, uint32_t first)
        : pool_(pool), thread_(thread), phase_(first) {}

    int thread() const { return thread_; }
    int threads() const { return pool_.size(); }

    // Enters the next phase, of `chunks` > 0 chunks.
    void enter(int chunks) {
        chunks_ = chunks;
        claimed_ = 0;
    }
    // A chunk nobody else has, -1 when none is left. A thread claims its share of the chunks in
    // ascending order before it helps others.
    int claim();
    // Reports the claimed chunks finished, and waits for the end of the phase.
    void leave();

  private:
    bool blocks_another() const;

    ThreadPool& pool_;
    const int thread_;
    uint32_t phase_;
    int chunks_ = 0;
    int claimed_ = 0;
};

}  // namespace sglite
