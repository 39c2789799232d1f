// SPDX-License-Identifier: Apache-2.0
// See bench_profile.h.
#include "bench_profile.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "output.h"
#include "text_format.h"

namespace cli {
namespace {

double figure(const gen_profile* profile, size_t index, const char* key) {
  double value = 0;
  gen_error error;
  check(gen_profile_get(profile, index, key, &value, &error), error);
  return value;
}

void remove_all(std::string& text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

/// The name without its layer: "linear blk.3.ffn_gate.weight" and "attention 3" lose the 3.
std::string kind_of(std::string name) {
  for (size_t at = name.find("blk."); at != std::string::npos; at = name.find("blk.", at)) {
    size_t end = at + 4;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    if (end < name.size()) ++end;
    name.erase(at, end - at);
  }
  remove_all(name, ".weight");
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.pop_back();
  }
  if (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

void add(ProfileRow& sum, const gen_profile* profile, size_t index) {
  sum.calls += figure(profile, index, "calls");
  sum.seconds += figure(profile, index, "seconds");
  sum.bytes += figure(profile, index, "bytes");
  sum.operations += figure(profile, index, "operations");
}

double seconds_of(const ProfilePart& part) {
  double sum = 0;
  for (const ProfileRow& row : part.rows) sum += row.seconds;
  return sum;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

double ProfileRow::peak(const Peaks& peaks) const {
  return name.starts_with("linear") ? peaks.operations : peaks.float_operations;
}

double ProfileRow::least_seconds(const Peaks& peaks) const {
  return std::max(bytes / peaks.bandwidth, operations / peak(peaks));
}

std::vector<ProfileRow> profile_rows(const gen_profile* profile) {
  std::map<std::string, ProfileRow> kinds;
  for (size_t i = 0; i < gen_profile_count(profile); ++i) {
    const std::string kind = kind_of(gen_profile_name(profile, i));
    if (kind.empty()) continue;  // has not run
    kinds[kind].name = kind;
    add(kinds[kind], profile, i);
  }
  std::vector<ProfileRow> rows;
  for (const auto& [kind, row] : kinds) rows.push_back(row);
  std::sort(rows.begin(), rows.end(),
            [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

ProfileRow profile_sum(const gen_profile* profile, const std::string& prefix) {
  ProfileRow sum;
  sum.name = prefix;
  for (size_t i = 0; i < gen_profile_count(profile); ++i) {
    if (std::string(gen_profile_name(profile, i)).starts_with(prefix)) add(sum, profile, i);
  }
  return sum;
}

std::string profile_table(const ProfilePart& part, const Peaks& peaks) {
  std::string out =
      format("%s, %.2f ms a pass\n", part.title.c_str(), part.wall_seconds / part.passes * 1e3);
  out += format("%-30s %7s %9s %7s %7s %7s %8s %7s %8s\n", "instruction", "calls", "ms", "share",
                "GB/s", "of read", "GOP/s", "of peak", "roofline");
  for (const ProfileRow& row : part.rows) {
    const double bandwidth = row.bytes / row.seconds;
    const double operations = row.operations / row.seconds;
    out += format("%-30s %7.0f %9.3f %7s %7s %7s %8s %7s %8s\n", row.name.c_str(),
                  row.calls / part.passes, row.seconds / part.passes * 1e3,
                  percent(row.seconds / part.wall_seconds).c_str(), number(bandwidth / 1e9).c_str(),
                  percent(bandwidth / peaks.bandwidth).c_str(), number(operations / 1e9).c_str(),
                  percent(operations / row.peak(peaks)).c_str(),
                  percent(row.least_seconds(peaks) / row.seconds).c_str());
  }
  const double between = part.wall_seconds - seconds_of(part);
  return out + format("%-30s %7s %9.3f %7s\n", "between instructions", "",
                      between / part.passes * 1e3, percent(between / part.wall_seconds).c_str());
}

nlohmann::ordered_json profile_json(const ProfilePart& part, const Peaks& peaks) {
  auto rows = nlohmann::ordered_json::array();
  for (const ProfileRow& row : part.rows) {
    rows.push_back({{"instruction", row.name},
                    {"calls", row.calls / part.passes},
                    {"seconds", row.seconds / part.passes},
                    {"bytes", row.bytes / part.passes},
                    {"operations", row.operations / part.passes},
                    {"roofline_share", row.least_seconds(peaks) / row.seconds}});
  }
  return {{"seconds", part.wall_seconds / part.passes}, {"instructions", rows}};
}

void write_profile_svg(const std::string& path, const std::string& title,
                       const std::vector<ProfilePart>& parts, const Peaks& peaks) {
  constexpr int kLeft = 260;  // where bars begin
  constexpr int kBar = 440;   // the longest
  constexpr int kWidth = 980;
  constexpr int kRow = 24;
  std::string body;
  int y = 34;
  const auto text = [&](int x, const char* style, const std::string& what) {
    body += format("<text x=\"%d\" y=\"%d\" %s>", x, y, style) + escaped(what) + "</text>\n";
  };
  const auto box = [&](int x, double width, const char* colour) {
    body += format("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>\n", x,
                   y - 13, width, colour);
  };
  text(20, "font-size=\"18\" font-weight=\"bold\"", title);
  y += 26;
  box(20, 40, "#9db9d8");
  box(20, 16, "#2f6aa8");
  text(70, "fill=\"#555\"",
       format("bar: time; dark: what the roofline needs (%.1f GB/s, %s %.0f GOP/s)",
              peaks.bandwidth / 1e9, peaks.products.c_str(), peaks.operations / 1e9));
  for (const ProfilePart& part : parts) {
    y += 44;
    text(20, "font-size=\"15\" font-weight=\"bold\"",
         format("%s: %.2f ms", part.title.c_str(), part.wall_seconds / part.passes * 1e3));
    const double longest = part.rows.empty() ? 1 : part.rows.front().seconds;
    for (const ProfileRow& row : part.rows) {
      y += kRow;
      const bool weights = row.name.starts_with("linear");
      const bool attention = row.name.starts_with("attention");
      const double scale = kBar / longest;
      text(kLeft - 10, "text-anchor=\"end\"", row.name);
      box(kLeft, std::max(row.seconds * scale, 1.0),
          weights ? "#9db9d8" : (attention ? "#f3c08b" : "#c9c9c9"));
      const double least = std::min(row.least_seconds(peaks), row.seconds);
      if (least > 0) box(kLeft, least * scale, weights ? "#2f6aa8" : "#d9781b");
      const int after = kLeft + static_cast<int>(row.seconds * scale) + 8;
      std::string label = format("%.2f ms, %.1f %%", row.seconds / part.passes * 1e3,
                                 row.seconds / part.wall_seconds * 100);
      if (least > 0) label += format(" (roofline %.0f %%)", least / row.seconds * 100);
      text(after, "fill=\"#333\"", label);
    }
  }
  write_file(path,
             "<!-- generate bench -->\n" +
                 format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ",
                        kWidth, y + 24) +
                 "font-family=\"sans-serif\" font-size=\"13\">\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
                 body + "</svg>\n");
}

}  // namespace cli
