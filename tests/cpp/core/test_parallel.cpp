#include "halosvm/core/parallel.hpp"
#include "oracle/allocations.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

using halosvm::Checkpoint;
using halosvm::Chunks;
using halosvm::Execution;
using halosvm::Index;
using halosvm::run_tasks;
using halosvm::thread_count;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Waits, asking the checkpoint, until it throws or far too much time has passed.
void wait_to_be_stopped(Checkpoint& checkpoint) {
  for (const auto start = Clock::now(); seconds_since(start) < 20.0;) {
    checkpoint();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Execution with_threads(int n_threads) {
  Execution execution;
  execution.n_threads = n_threads;
  return execution;
}

}  // namespace

TEST_CASE("every task runs exactly once, on slots that are never shared") {
  for (const int n_threads : {1, 2, 3, 8}) {
    for (const Index n_tasks : {0, 1, 2, 7, 500}) {
      CAPTURE(n_threads);
      CAPTURE(n_tasks);
      const int slots = thread_count(n_tasks, with_threads(n_threads));
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n_tasks));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(slots));
      std::atomic<int> wrong{0};
      run_tasks(n_tasks, with_threads(n_threads), [&](Index task, int slot, Checkpoint&) {
        if (slot < 0 || slot >= slots) {
          ++wrong;
          return;
        }
        auto& mine = busy[static_cast<std::size_t>(slot)];
        if (mine++ != 0) ++wrong;
        ++runs[static_cast<std::size_t>(task)];
        --mine;
      });
      CHECK(wrong == 0);
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("thread_count is what was asked for, but at most one for each task and at least one") {
  CHECK(thread_count(10, with_threads(3)) == 3);
  CHECK(thread_count(2, with_threads(3)) == 2);
  CHECK(thread_count(1, with_threads(3)) == 1);
  CHECK(thread_count(0, with_threads(3)) == 1);
  CHECK(thread_count(0, with_threads(0)) == 1);
  CHECK(thread_count(1000000, with_threads(0)) >= 1);
}

#ifdef __linux__
TEST_CASE("thread_count follows the processors this process may use") {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  CHECK(thread_count(1000000, with_threads(0)) == CPU_COUNT(&allowed));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const int restricted = thread_count(1000000, with_threads(0));
  REQUIRE(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
  CHECK(restricted == 1);
}
#endif

TEST_CASE("an exception of a worker reaches the caller and stops the other tasks") {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> started{0};
  const auto run = [&] {
    run_tasks(1000, with_threads(2), [&](Index, int, Checkpoint& checkpoint) {
      ++started;
      if (std::this_thread::get_id() != caller) throw std::out_of_range("from a worker");
      wait_to_be_stopped(checkpoint);
    });
  };
  CHECK_THROWS_WITH_AS(run(), "from a worker", std::out_of_range);
  CHECK(started <= 2);
}

TEST_CASE("an exception of the caller's own task stops the workers") {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> worker_stopped{false};
  std::atomic<bool> worker_started{false};
  const auto run = [&] {
    run_tasks(2, with_threads(2), [&](Index, int, Checkpoint& checkpoint) {
      if (std::this_thread::get_id() == caller) {
        while (!worker_started) std::this_thread::yield();
        throw std::out_of_range("from the caller");
      }
      worker_started = true;
      try {
        wait_to_be_stopped(checkpoint);
      } catch (...) {
        worker_stopped = true;
        throw;
      }
    });
  };
  CHECK_THROWS_WITH_AS(run(), "from the caller", std::out_of_range);
  CHECK(worker_stopped);
}

TEST_CASE("an exception of the hook reaches the caller after all threads have ended") {
  std::atomic<int> running{0};
  Execution execution = with_threads(3);
  execution.keep_running = []() -> bool { throw std::domain_error("from the hook"); };
  const auto run = [&] {
    run_tasks(3, execution, [&](Index, int, Checkpoint& checkpoint) {
      ++running;
      try {
        wait_to_be_stopped(checkpoint);
      } catch (...) {
        --running;
        throw;
      }
    });
  };
  CHECK_THROWS_WITH_AS(run(), "from the hook", std::domain_error);
  CHECK(running == 0);
}

TEST_CASE("the hook stops a call within half a second, also one whose work is all on other threads") {
  const auto caller = std::this_thread::get_id();
  for (const bool caller_works : {true, false}) {
    CAPTURE(caller_works);
    int asked = 0;
    bool on_caller = true;
    Clock::time_point refused;
    Execution execution = with_threads(2);
    execution.keep_running = [&] {
      on_caller = on_caller && std::this_thread::get_id() == caller;
      refused = Clock::now();
      return ++asked < 3;
    };
    const auto start = Clock::now();
    std::atomic<bool> worker_started{false};
    const auto run = [&] {
      run_tasks(2, execution, [&](Index, int slot, Checkpoint& checkpoint) {
        if (slot != 0) worker_started = true;
        while (slot == 0 && !worker_started) std::this_thread::yield();
        if (slot != 0 || caller_works) wait_to_be_stopped(checkpoint);
      });
    };
    CHECK_THROWS_AS(run(), halosvm::Stopped);
    CHECK(seconds_since(refused) < 0.5);
    CHECK(std::chrono::duration<double>(refused - start).count() >= 0.1);  // three times 50 ms, roughly
    CHECK(asked == 3);
    CHECK(on_caller);
  }
}

TEST_CASE("a hook that agrees changes nothing") {
  Execution execution = with_threads(2);
  execution.keep_running = [] { return true; };
  std::atomic<int> runs{0};
  run_tasks(50, execution, [&](Index, int, Checkpoint& checkpoint) {
    checkpoint();
    ++runs;
  });
  CHECK(runs == 50);
}

TEST_CASE("a call that has no memory for its threads goes on with those there are") {
  std::vector<int> runs(64);
  const auto run = [&] {
    run_tasks(64, with_threads(4), [&](Index task, int, Checkpoint&) { ++runs[static_cast<std::size_t>(task)]; });
  };
  const std::size_t n_allocations = oracle::allocations_in(run);
  CHECK(n_allocations >= 3);
  for (std::size_t failing = 1; failing <= n_allocations; ++failing) {
    CAPTURE(failing);
    runs.assign(64, 0);
    oracle::fail_allocation(failing);
    run();
    oracle::fail_allocation(0);
    CHECK(runs == std::vector<int>(64, 1));
  }
}

TEST_CASE("numbers of threads below 0 are refused, chunks have a row at least") {
  CHECK_THROWS_WITH_AS(thread_count(3, with_threads(-1)), "n_threads is -1; it must be >= 0 and finite",
                       std::invalid_argument);
  CHECK(Chunks(0, 0).count() == 0);
  CHECK(Chunks(3, 0).count() == 3);
}

TEST_CASE("Stopped says that the caller stopped the call") {
  CHECK(std::string(halosvm::Stopped().what()) == "stopped by the caller");
}

TEST_CASE("chunks cover all rows once and in order, at most 64 of them, each of the least size or the last") {
  for (const Index n_rows : {0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 100003}) {
    for (const Index least : {1, 2, 7, 64, 256, 1000000}) {
      CAPTURE(n_rows);
      CAPTURE(least);
      const Chunks chunks(n_rows, least);
      Index next = 0;
      for (Index chunk = 0; chunk < chunks.count(); ++chunk) {
        CHECK(chunks.begin(chunk) == next);
        CHECK(chunks.end(chunk) > next);
        if (chunk + 1 < chunks.count()) CHECK(chunks.end(chunk) - next >= least);
        next = chunks.end(chunk);
      }
      CHECK(next == n_rows);
      CHECK(chunks.count() <= 64);
    }
  }
}
