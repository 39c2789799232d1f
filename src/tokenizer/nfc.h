// SPDX-License-Identifier: Apache-2.0
// Unicode's normalisation form C: characters in as few code points as they have, their marks in one
// order, so that texts that look alike are alike.
#pragma once

#include <string>
#include <string_view>

namespace gen::tokenizer {

/// `text`, valid UTF-8, in form C: a view of itself where it is that already, else of `*made`. May
/// throw std::bad_alloc. Cost: linear; runs of marks are sorted.
std::string_view to_nfc(std::string_view text, std::string* made);

}  // namespace gen::tokenizer
