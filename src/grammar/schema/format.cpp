// SPDX-License-Identifier: Apache-2.0
// Formats, see format.h: RFC 3339 (dates), 5321 (mail), 1123 (hosts), 3986 and 3987 (references),
// 6570 (templates), 6901 (pointers), 4122 (UUIDs).
#include "grammar/schema/format.h"

#include <utility>
#include <vector>

namespace gen::grammar {
namespace {

// Years divisible by 4, except those divisible by 100 but not by 400, have a 29th of February.
std::string date() {
  const std::string leap =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
  return "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
         "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
         leap + "-02-29)";
}

std::string two_digits(int number) {
  return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
}

// A leap second is the last second of a day in UTC, whatever the local time. Offsets are whole
// quarters of an hour, as all have been since leap seconds exist.
std::string leap_second(const std::string& fraction) {
  std::string all = "23:59:60" + fraction + "[Zz]";
  for (int hour = 0; hour < 24; ++hour) {
    for (const int minute : {14, 29, 44, 59}) {
      const int ahead = hour * 60 + minute + 1;  // minutes, of the next day in UTC
      const int behind = 23 * 60 + 59 - (hour * 60 + minute);
      const auto clock = [](int minutes) {
        return two_digits(minutes / 60 % 24) + ":" + two_digits(minutes % 60);
      };
      all += "|" + two_digits(hour) + ":" + two_digits(minute) + ":60" + fraction + "(?:\\+" +
             clock(ahead) + "|-" + clock(behind) + ")";
    }
  }
  return all;
}

std::string time() {
  const std::string fraction = "(?:\\.[0-9]+)?";
  return "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" + fraction +
         "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|" + leap_second(fraction) + ")";
}

// `n`: a whole number.
std::string duration(const std::string& n) {
  const auto parts = [&](const char* first, const char* second, const char* third) {
    const std::string one = n + first, two = n + second, three = n + third;
    return "(?:" + one + "(?:" + two + "(?:" + three + ")?)?|" + two + "(?:" + three + ")?|" +
           three + ")";
  };
  const std::string t = "T" + parts("H", "M", "S");
  return "P(?:" + parts("Y", "M", "D") + "(?:" + t + ")?|" + t + "|" + n + "W)";
}

// At most nanoseconds, no leap second, and offsets up to 14 hours, as in .NET.
std::string plain_time() {
  return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
         "(?:Z|(?!-00:00)[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))";
}

std::string ipv4() {
  const std::string part = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return "(?:" + part + "\\.){3}" + part;
}

std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  const std::string last = "(?:" + h + ":" + h + "|" + ipv4() + ")";
  return "(?:(?:" + h + ":){6}" + last + "|::(?:" + h + ":){5}" + last + "|(?:" + h +
         ")?::(?:" + h + ":){4}" + last + "|(?:(?:" + h + ":){0,1}" + h + ")?::(?:" + h + ":){3}" +
         last + "|(?:(?:" + h + ":){0,2}" + h + ")?::(?:" + h + ":){2}" + last + "|(?:(?:" + h +
         ":){0,3}" + h + ")?::" + h + ":" + last + "|(?:(?:" + h + ":){0,4}" + h + ")?::" + last +
         "|(?:(?:" + h + ":){0,5}" + h + ")?::" + h + "|(?:(?:" + h + ":){0,6}" + h + ")?::)";
}

// From draft 7 on, labels with "--" in the third position are reserved for internationalised names.
// The text after "xn--" is Punycode (RFC 3492), in which the weight of each letter depends on all
// earlier ones, so no automaton can decide its validity: with `open` everything is accepted,
// otherwise nothing.
std::string hostname(Draft draft, bool open) {
  const std::string but = open ? "(?![Xx][Nn])" : "";
  const std::string reserved = draft >= Draft::k7 ? "(?!" + but + "[A-Za-z0-9-]{2}--)" : "";
  const std::string label = "(?:" + reserved + "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)";
  return label + "(?:\\." + label + ")*";
}

std::string email(const std::string& other) {
  const std::string text = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" + other + "-]+";
  const std::string quoted = "\"(?:[ !#-\\[\\]-~" + other + "]|\\\\[ -~])*\"";
  const std::string edge = "[A-Za-z0-9" + other + "]";
  const std::string label = edge + "(?:[A-Za-z0-9" + other + "-]*" + edge + ")?";
  return "(?:" + text + "(?:\\." + text + ")*|" + quoted + ")@(?:" + label + "(?:\\." + label +
         ")*|\\[(?:" + ipv4() + "|[Ii][Pp][Vv]6:" + ipv6() + ")\\])";
}

constexpr const char* kUcs =
    "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}"
    "\\u{30000}-\\u{3FFFD}\\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}"
    "\\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}"
    "\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}\\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}";
constexpr const char* kPrivate = "\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

// `ucs`: characters beyond ASCII; `own`: private-use characters, in queries.
std::string reference(const std::string& ucs, const std::string& own, bool relative) {
  const std::string percent = "%[0-9A-Fa-f]{2}";
  const std::string free = "A-Za-z0-9._~" + ucs;
  const std::string sub = "!$&'()*+,;=";
  const auto some = [&](const std::string& more) {
    return "(?:[" + free + sub + more + "-]|" + percent + ")";
  };
  const std::string pchar = some(":@");
  const std::string ip =
      "\\[(?:" + ipv6() + "|[Vv][0-9A-Fa-f]+\\.[" + "A-Za-z0-9._~" + sub + ":-]+)\\]";
  const std::string authority =
      "(?:" + some(":") + "*@)?(?:" + ip + "|" + some("") + "*)(?::[0-9]*)?";
  const std::string segments = "(?:/" + pchar + "*)*";
  const std::string absolute = "/(?:" + pchar + "+" + segments + ")?";
  const std::string hier =
      "(?://" + authority + segments + "|" + absolute + "|" + pchar + "+" + segments + "|)";
  const std::string query = "(?:\\?(?:" + some(":@/?" + own) + ")*)?";
  const std::string fragment = "(?:#(?:" + some(":@/?") + ")*)?";
  const std::string full = "[A-Za-z][A-Za-z0-9+.-]*:" + hier + query + fragment;
  if (!relative) return full;
  const std::string part =
      "(?://" + authority + segments + "|" + absolute + "|" + some("@") + "+" + segments + "|)";
  return "(?:" + full + "|" + part + query + fragment + ")";
}

std::string uri_template() {
  const std::string percent = "%[0-9A-Fa-f]{2}";
  const std::string literal =
      "(?:[!#$&-;=?-\\[\\]_a-z~" + std::string(kUcs) + kPrivate + "]|" + percent + ")";
  const std::string character = "(?:[A-Za-z0-9_]|" + percent + ")";
  const std::string name = character + "(?:\\.?" + character + ")*";
  const std::string variable = name + "(?::[1-9][0-9]{0,3}|\\*)?";
  return "(?:" + literal + "|\\{[+#./;?&=,!@|]?" + variable + "(?:," + variable + ")*\\})*";
}

}  // namespace

FormatKind format_pattern(std::string_view name, Draft draft, bool open, std::string* pattern) {
  const std::string pointer = "(?:/(?:[^~/]|~[01])*)*";
  const auto known = [&](std::string made) {
    *pattern = std::move(made);
    return FormatKind::kKnown;
  };
  if (name == "date") return known(date());
  if (name == "time") return known(time());
  if (name == "date-time") return known(date() + "[Tt]" + time());
  if (name == "duration") return known(duration("[0-9]+"));
  if (name == "email") return known(email(""));
  if (name == "idn-email") return known(email("\\u0080-\\u{10FFFF}"));
  if (name == "hostname") return known(hostname(draft, open));
  if (name == "ipv4") return known(ipv4());
  if (name == "ipv6") return known(ipv6());
  if (name == "uri") return known(reference("", "", false));
  if (name == "uri-reference") return known(reference("", "", true));
  if (name == "iri") return known(reference(kUcs, kPrivate, false));
  if (name == "iri-reference") return known(reference(kUcs, kPrivate, true));
  if (name == "uri-template") return known(uri_template());
  if (name == "uuid") {
    return known("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}");
  }
  if (name == "json-pointer") return known(pointer);
  if (name == "relative-json-pointer") return known("(?:0|[1-9][0-9]*)(?:#|" + pointer + ")");
  if (name == "idn-hostname") return FormatKind::kRefused;
  return FormatKind::kUnknown;
}

bool plain_format_pattern(std::string_view name, std::string* pattern) {
  const std::string day = "(?!0000)" + date();
  if (name == "date") *pattern = day;
  if (name == "time") *pattern = plain_time();
  // In UTC, too, the year must be 1 to 9999.
  if (name == "date-time") {
    *pattern = "(?!0001-01-01T[^+]*\\+|9999-12-31T[^-]*-)" + day + "T" + plain_time();
  }
  if (name == "duration") *pattern = duration("[0-9]{1,9}");
  return name == "date" || name == "time" || name == "date-time" || name == "duration";
}

}  // namespace gen::grammar
