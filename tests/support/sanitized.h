// SPDX-License-Identifier: Apache-2.0
// Whether this build runs under a sanitizer, where the same cases take ten times as long: tests
// that multiply long lists of cases may then leave out those that take no other path.
#pragma once

namespace gen::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Of the combinations that nested loops make one in `n` under a sanitizer, all in other builds. With an `n` that divides no
/// loop's length each value of each loop still has its turn.
class Thinned {
 public:
  explicit Thinned(int n) : n_(kSanitized ? n : 1) {}
  bool skips() { return ++turn_ % n_ != 0; }

 private:
  int n_;
  int turn_ = 0;
};

/// A number of trials: a fourth of it under a sanitizer.
constexpr int fewer(int trials) { return kSanitized ? (trials + 3) / 4 : trials; }

}  // namespace gen::test
