// SPDX-License-Identifier: Apache-2.0
// Profiles of forward passes in readable form: instructions summed over all layers, as a table, as
// JSON and as a bar chart.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench_peaks.h"
#include "handles.h"

namespace cli {

using Profile = Handle<gen_profile, gen_profile_free>;

/// Instructions of one kind, or a sum over several.
struct ProfileRow {
  std::string name;  // "linear ffn_down", "attention"
  double calls = 0;
  double seconds = 0;
  double bytes = 0;
  double operations = 0;

  /// Minimum seconds at the machine's peaks; 0 for instructions that neither read weights nor
  /// multiply.
  [[nodiscard]] double least_seconds(const Peaks& peaks) const;
  /// Operations per second that this kind of instruction could reach.
  [[nodiscard]] double peak(const Peaks& peaks) const;
};

/// One row for each kind of instruction, the longest first.
std::vector<ProfileRow> profile_rows(const gen_profile* profile);
/// Sum of the rows whose name begins with `prefix`.
ProfileRow profile_sum(const gen_profile* profile, const std::string& prefix);

/// One section of a bench: "prefill 128" or "decode", with the wall-clock time of all its passes.
struct ProfilePart {
  std::string title;
  std::vector<ProfileRow> rows;
  double passes = 1;  // figures are shown per pass
  double wall_seconds = 0;
};

std::string profile_table(const ProfilePart& part, const Peaks& peaks);
nlohmann::ordered_json profile_json(const ProfilePart& part, const Peaks& peaks);
/// Writes an SVG file: bars proportional to the time, with the part that the roofline needs in full
/// colour.
void write_profile_svg(const std::string& path, const std::string& title,
                       const std::vector<ProfilePart>& parts, const Peaks& peaks);

}  // namespace cli
