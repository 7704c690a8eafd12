// Threads: chunks of work come in, and are done in any order.

#include "halosvm/core/parallel.hpp"

#include "halosvm/core/check.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace halosvm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(50);

/// Tells a task that another one failed; never leaves this file.
struct Abandoned {};

struct Shared {
  std::atomic<Index> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable ended;
  int running = 0;
  std::exception_ptr error;

  void fail(std::exception_ptr exception) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!error) error = std::move(exception);
    stop = true;
  }
};

class WorkerCheckpoint final : public Checkpoint {
 public:
  explicit WorkerCheckpoint(Shared& shared) : shared_(shared) {}
  void operator()() override {
    if (shared_.stop.load(std::memory_order_relaxed)) throw Abandoned{};
  }

 private:
  Shared& shared_;
};

/// The calling thread's checkpoint: only there may the caller's hook run.
class CallerCheckpoint final : public Checkpoint {
 public:
  CallerCheckpoint(Shared& shared, const Execution& execution) : shared_(shared), execution_(execution) {}
  void operator()() override {
    if (shared_.stop.load(std::memory_order_relaxed)) throw Abandoned{};
    if (!execution_.keep_running) return;
    // The clock outlives the call, so that many short calls in a row are polled as well as a long one.
    thread_local Clock::time_point last;
    const auto now = Clock::now();
    if (now - last < poll_interval) return;
    last = now;
    if (!execution_.keep_running()) throw Stopped{};
  }

 private:
  Shared& shared_;
  const Execution& execution_;
};

void work(Index n_tasks, int slot, const Task& task, Shared& shared, Checkpoint& checkpoint) {
  try {
    for (Index i = shared.next++; i < n_tasks; i = shared.next++) {
      checkpoint();
      task(i, slot, checkpoint);
    }
  } catch (const Abandoned&) {  // NOLINT(bugprone-empty-catch): the error that caused it is already stored
  } catch (...) {
    shared.fail(std::current_exception());
  }
}

int usable_processors() {
#ifdef __linux__
  // The affinity mask, not the machine: containers and batch systems hand out fewer processors than there are.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int thread_count(Index n_tasks, const Execution& execution) {
  if (execution.n_threads < 0) check::not_negative("n_threads", execution.n_threads);
  const int wanted = execution.n_threads > 0 ? execution.n_threads : usable_processors();
  return static_cast<int>(std::max<Index>(1, std::min<Index>(wanted, n_tasks)));
}

void run_tasks(Index n_tasks, const Execution& execution, const Task& task) {
  Shared shared;
  std::vector<std::thread> threads;
  const int n_threads = thread_count(n_tasks, execution);
  try {
    threads.reserve(static_cast<std::size_t>(n_threads - 1));
    for (int slot = 1; slot < n_threads; ++slot) {
      threads.emplace_back([&, slot] {
        WorkerCheckpoint checkpoint(shared);
        work(n_tasks, slot, task, shared, checkpoint);
        const std::lock_guard<std::mutex> lock(shared.mutex);
        --shared.running;
        shared.ended.notify_one();
      });
      const std::lock_guard<std::mutex> lock(shared.mutex);
      ++shared.running;
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory or no more threads: fewer of them, the same result
  }
  CallerCheckpoint checkpoint(shared, execution);
  work(n_tasks, 0, task, shared, checkpoint);

  // The caller's own tasks are done; while the others finish theirs, its hook must still be asked.
  std::unique_lock<std::mutex> lock(shared.mutex);
  while (!shared.ended.wait_for(lock, poll_interval, [&] { return shared.running == 0; })) {
    lock.unlock();
    try {
      checkpoint();
    } catch (const Abandoned&) {  // NOLINT(bugprone-empty-catch): the others are already stopping
    } catch (...) {
      shared.fail(std::current_exception());
    }
    lock.lock();
  }
  lock.unlock();
  for (auto& thread : threads) thread.join();
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace halosvm
