/// \file
/// The loops over blocks of rows: rows come in, sums over them in the order of the rows go out, or what is each block's
/// own, whatever the number of threads.
#pragma once

#include "halosvm/core/parallel.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Sums of the chunks and work space of the threads. \p Sum has set_zero() and add().
template <class Sum, class Work>
struct BlockMemory {
  std::vector<Sum> sums;   ///< one for each chunk
  std::vector<Work> work;  ///< one for each thread
};

/// total = the sum over all blocks of what body(begin, count, work, sum) adds, in the order of the rows.
/// \param block_rows rows of a block, but for the last of a chunk.
/// \param memory of earlier passes with the same makers, or empty. \param make_sum, make_work make what it lacks.
template <class Sum, class Work, class MakeSum, class MakeWork, class Body>
void sum_over_blocks(const Chunks& chunks, Index block_rows, const Execution& execution, BlockMemory<Sum, Work>& memory,
                     const MakeSum& make_sum, const MakeWork& make_work, const Body& body, Sum& total) {
  const auto n_chunks = static_cast<std::size_t>(chunks.count());
  const auto n_slots = static_cast<std::size_t>(thread_count(chunks.count(), execution));
  while (memory.sums.size() < n_chunks) memory.sums.push_back(make_sum());
  while (memory.work.size() < n_slots) memory.work.push_back(make_work());
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    Sum& sum = memory.sums[static_cast<std::size_t>(chunk)];
    sum.set_zero();
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block_rows) {
      checkpoint();
      body(begin, std::min(block_rows, chunks.end(chunk) - begin), memory.work[static_cast<std::size_t>(slot)], sum);
    }
  });
  total.set_zero();
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) total.add(memory.sums[chunk]);
}

/// body(work, begin, count) for all blocks of rows, for results that are the blocks' own.
/// \param make makes the work space of a thread, a std::unique_ptr.
template <class Make, class Body>
void for_each_block(Index n_rows, Index block_rows, const Execution& execution, const Make& make, const Body& body) {
  const Chunks chunks(n_rows, block_rows);
  std::vector<decltype(make())> works(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& work = works[static_cast<std::size_t>(slot)];
    if (!work) work = make();
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block_rows) {
      checkpoint();
      body(*work, begin, std::min(block_rows, chunks.end(chunk) - begin));
    }
  });
}

/// Memory that a call takes and gives back, for the next one to find. Of calls at the same time, one finds it.
template <class Memory>
class Kept {
 public:
  /// The memory that was given back, or null if there is none or another call has it.
  std::unique_ptr<Memory> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(memory_);
  }
  /// Leaves memory for the next call.
  void give(std::unique_ptr<Memory> memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_ = std::move(memory);
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
