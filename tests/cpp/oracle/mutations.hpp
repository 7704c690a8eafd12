/// \file
/// Texts that are damaged at random, as many as HALOSVM_MUTATIONS says.
#pragma once

#include "oracle/random.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace oracle {

/// Calls use(text) for damaged texts, each made of one of \p texts. \returns how many.
template <class Texts, class Use>
int for_mutations(const Texts& texts, const Use& use) {
  const char* more = std::getenv("HALOSVM_MUTATIONS");
  const int count = more != nullptr ? std::atoi(more) : 2000;
  Random random(11);
  const auto below = [&](std::size_t n) {
    return std::min(n - 1, static_cast<std::size_t>(random.uniform(0.0, 1.0) * static_cast<double>(n)));
  };
  const std::string pieces = "0123456789-+.eE\"\\[]{},:nulltruefalse\xFF\x00\n";
  for (int i = 0; i < count; ++i) {
    std::string text = texts[static_cast<std::size_t>(i) % std::size(texts)];
    for (std::size_t k = 0; k <= below(4); ++k) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(text.size() - at, 1 + below(20));
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
          break;
        case 1:
          text.erase(at, std::min(length, text.size() - 1));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        case 3:
          text[at] = pieces[below(pieces.size())];
          break;
        default:
          text.resize(std::max<std::size_t>(1, at));
      }
    }
    use(text);
  }
  return count;
}

}  // namespace oracle
