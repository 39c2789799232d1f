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

}  // namespace gen::test
