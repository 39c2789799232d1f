// SPDX-License-Identifier: Apache-2.0
// What is said of an architecture that cannot be built.
#pragma once

#include <string>
#include <string_view>

namespace gen::model::arch {

/// Of a name that files are known to have, what stands in the way, such as "it needs latent
/// attention" or "it is an encoder"; "" for others.
std::string why_not_supported(std::string_view name);

/// How well `name` may be a spelling of `other`: 0 for the same letters and digits, then the number
/// of letters that differ; -1 for names too far apart.
int spelling_distance(std::string_view name, std::string_view other);

}  // namespace gen::model::arch
