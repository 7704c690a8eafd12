/// \file
/// The record of a kernel machine comes in, the model goes out, with the memory of its support examples.
#pragma once

#include "halosvm/model/kernel_model.hpp"
#include "model/record.hpp"

namespace halosvm::record {

/// Scores of pairs of classes of an UncertainKernelSVC, else a score for each class, or one.
/// \throws std::invalid_argument with place and member for parts that do not go together.
KernelModel kernel_model(const JsonReader& reader, Record& record);

}  // namespace halosvm::record
