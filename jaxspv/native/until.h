// Stopping conditions as numbers: postfix pairs (kind, value), as `Until.postfix` writes them.
#pragma once
#include <cstdint>
#include <vector>

namespace jaxspv {

enum UntilKind : int32_t { kReached = 0, kUnchanged = 1, kMaxIterations = 2, kOr = 3, kAnd = 4 };

// Whether the condition of `count` pairs holds; none, or a broken one: never.
// reached(node): whether a search has reached a node.
template <class Reached>
bool holds(const int32_t* pairs, int64_t count, int64_t iteration, bool unchanged, const Reached& reached) {
  std::vector<bool> stack;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t kind = pairs[2 * i], value = pairs[2 * i + 1];
    if (kind == kReached) stack.push_back(reached(value));
    else if (kind == kUnchanged) stack.push_back(unchanged);
    else if (kind == kMaxIterations) stack.push_back(iteration >= value);
    else {
      if (stack.size() < 2) return false;
      const bool right = stack.back();
      stack.pop_back();
      stack.back() = kind == kOr ? stack.back() || right : stack.back() && right;
    }
  }
  return !stack.empty() && stack.back();
}

}  // namespace jaxspv
