// SPDX-License-Identifier: Apache-2.0
// The tensors of a file: as JSON one by one, as text by layer and type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gguf_head.h"

namespace cli {

/// {"tensors":[{"name","type","shape","weights","bytes","layer"?,"there"?,"unused"?,"drafts"?}…],
/// "types":{TYPE:SUM}, "head":SUM?, "unused":{REASON:SUM}} are added to `out`, where SUM is
/// {"tensors","weights","bytes"}; types with the most bytes come first. `head_drafts`: the head in
/// the file is used when the model generates, so it is not unused. `loaded` is what
/// gen_model_describe says of the file, null if the library does not load it: then nothing is known
/// of what is unused.
void describe_tensors(const GgufHead& head, const nlohmann::ordered_json& loaded, bool head_drafts,
                      nlohmann::ordered_json* out);

/// What is missing of a file that was cut off: {"ends_at","needed","tensors","whole","first"}, or
/// null.
nlohmann::ordered_json describe_missing(const GgufHead& head);

/// The tables for reading: layers that are equal together, then all other tensors.
void print_tensors(const nlohmann::ordered_json& described);

}  // namespace cli
