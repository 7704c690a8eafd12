/// \file
/// Work split over threads so that the result never depends on their number: the data alone decide the chunks, and
/// partial results are combined in chunk order. A running call can be stopped from outside.
#pragma once

#include "halosvm/core/types.hpp"

#include <algorithm>
#include <exception>
#include <functional>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// How a call runs.
struct Execution {
  /// Number of threads; 0 means one for each processor this process may use.
  int n_threads = 0;
  /// Asked on the calling thread about every 50 ms during long work; false stops the call with Stopped. It may throw:
  /// the exception reaches the caller after all threads have ended.
  std::function<bool()> keep_running;
};

/// Thrown to the caller when Execution::keep_running returned false.
class Stopped : public std::exception {
 public:
  /// One sentence.
  const char* what() const noexcept override { return "stopped by the caller"; }
};

/// Handed to each task of a parallel call; long tasks call operator() often.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  /// Leaves the task by an exception when the call is to stop.
  virtual void operator()() = 0;
};

/// A reference to a function of a task's number, the slot of the thread that runs it (for per-thread memory), and its
/// checkpoint. Unlike std::function it never allocates.
class Task {
 public:
  /// Refers to the function, which must outlive this object; it is called as function(task, slot, checkpoint).
  template <class Function>
  Task(const Function& function)  // NOLINT(*-explicit-constructor): lambdas become tasks
      : function_(&function), call_([](const void* object, Index task, int slot, Checkpoint& checkpoint) {
          (*static_cast<const Function*>(object))(task, slot, checkpoint);
        }) {}
  /// Calls the function.
  void operator()(Index task, int slot, Checkpoint& checkpoint) const { call_(function_, task, slot, checkpoint); }

 private:
  const void* function_;
  void (*call_)(const void*, Index, int, Checkpoint&);
};

/// Number of threads that run_tasks() starts, hence of slots; at least 1.
int thread_count(Index n_tasks, const Execution& execution);

/// Runs every task once, on the calling thread and on thread_count - 1 more, started and joined in here.
/// The first exception of a task stops the others and is thrown again once all threads have ended.
void run_tasks(Index n_tasks, const Execution& execution, const Task& task);

/// The rows 0..n_rows-1 cut into at most 64 runs of at least \p least rows; depends on the arguments alone.
class Chunks {
 public:
  /// Chunks of \p n_rows rows.
  Chunks(Index n_rows, Index least) : n_rows_(n_rows), size_(std::max({Index{1}, least, (n_rows + 63) / 64})) {}
  /// Number of chunks.
  Index count() const { return (n_rows_ + size_ - 1) / size_; }
  /// First row of a chunk.
  Index begin(Index chunk) const { return chunk * size_; }
  /// The row after the last of a chunk.
  Index end(Index chunk) const { return std::min(n_rows_, (chunk + 1) * size_); }

 private:
  Index n_rows_;
  Index size_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
