// The thread pool of a model. Its threads spin while a call runs and sleep between calls.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace sglite {

// Threads of one call meet here; spins, and yields to the system when that takes long.
class Barrier {
  public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait();

  private:
    const int threads_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> generation_{0};
};

class alignas(64) Counter {
  public:
    void reset() { next_.store(0, std::memory_order_relaxed); }
    int take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  private:
    std::atomic<int> next_{0};
};

class ThreadPool {
  public:
    using Job = void (*)(void* argument, int thread);

    // Throws std::system_error where the system gives no more threads.
    explicit ThreadPool(int threads);
    ~ThreadPool() { stop(); }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return static_cast<int>(workers_.size()) + 1; }
    Barrier& barrier() { return barrier_; }

    // Calls job(argument, i) on every thread i side by side, the caller being thread 0.
    void run(Job job, void* argument);

  private:
    void work(int thread);
    void stop();

    Barrier barrier_;
    Job job_ = nullptr;
    void* argument_ = nullptr;
    const long owner_;  // the process that has the threads
    std::atomic<int> call_{0};  // counts calls; workers sleep on it
    std::atomic<bool> stop_{false};
    std::vector<std::thread> workers_;
};

}  // namespace sglite
