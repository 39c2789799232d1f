// SPDX-License-Identifier: Apache-2.0
// See manual.h.
#include "manual.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "text_format.h"

namespace cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Options that have a name with dashes or a position, without hidden ones.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Escapes text for troff: literal dashes, and no line that is a request.
std::string escaped(const std::string& text) {
  std::string out;
  bool first = true;
  for (const char c : text) {
    if (first && (c == '.' || c == '\'')) out += "\\&";
    first = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string names_of(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  return out.empty() ? option.get_name(true) : out;
}

/// "INT" of an option that takes a number, "" of a flag.
std::string value_of(const CLI::Option& option) {
  if (option.get_positional() && option.get_lnames().empty()) return "";
  const std::string type = option.get_expected_max() == 0 ? "" : option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string options_page(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : options_of(app)) {
    const std::string names = escaped(names_of(*option));
    const std::string value = value_of(*option);
    out += ".TP\n";
    out += value.empty() ? ".B " + names + "\n" : ".BI \"" + names + " \" " + value + "\n";
    const std::string initial = option->get_default_str();
    out += escaped(option->get_description());
    if (!initial.empty() && initial != "[]") out += " (default " + escaped(initial) + ")";
    out += "\n";
  }
  return out;
}

std::string synopsis(const CLI::App& app, const std::string& before) {
  std::string out = ".B " + before + "\n[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option* option : options_of(app)) {
    if (!option->get_positional()) continue;
    const std::string name = "\\fI" + upper(option->get_name(true)) + "\\fR";
    out += (option->get_required() ? name : "[" + name + "]") + "\n";
  }
  return out;
}

/// Edit distance of two words: insert, delete or change a letter, or exchange two.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& version,
                        const std::string& examples) {
  const std::string name = app.get_name();
  std::string summary = app.get_description();
  while (!summary.empty() && summary.back() == '.') summary.pop_back();
  std::string out = ".TH " + upper(escaped(name)) + " 1 \"\" \"libgenerate " + version +
                    "\" \"User Commands\"\n.SH NAME\n" + escaped(name) + " \\- " +
                    escaped(summary) + "\n.SH SYNOPSIS\n";
  const auto commands = commands_of(app);
  if (commands.empty()) {
    out += synopsis(app, escaped(name)) + ".SH OPTIONS\n" + options_page(app);
  } else {
    out += ".B " + name + "\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n" + options_page(app) +
           ".SH COMMANDS\n";
    for (const CLI::App* command : commands) {
      const std::string whole = name + " " + command->get_name();
      out += ".SS " + whole + "\n" + escaped(command->get_description()) + ".\n.PP\n" +
             synopsis(*command, whole) + options_page(*command);
    }
  }
  out +=
      ".SH EXIT STATUS\n0, 1 after an error, 2 for a wrong command line, 3 for a text that a "
      "limit cut off before it was complete under its grammar, 130 after Ctrl-C.\n";
  out +=
      ".SH ENVIRONMENT\n.TP\n.B GEN_MODEL\nthe model to use without \\-m\n.TP\n"
      ".B GEN_CPU\nforces a CPU level: scalar, avx2, avx512, avx512_vnni, avx512_bf16 or neon\n";
  if (!examples.empty()) out += ".SH EXAMPLES\n.nf\n" + escaped(examples) + ".fi\n";
  return out + ".SH SEE ALSO\nThe pages in /usr/share/doc/generate.\n";
}

std::string parse_failure(const CLI::App* app, const CLI::Error& problem) {
  const auto parsed = app->get_subcommands();
  const std::string command = parsed.empty() ? "" : " " + parsed.front()->get_name();
  const bool lists_commands = command.empty() && !commands_of(*app).empty();
  std::string said = printable(problem.what());
  constexpr size_t kMostSaid = 1000;  // an argument in it may be as long as a file
  if (said.size() > kMostSaid) {
    size_t end = kMostSaid;
    while ((static_cast<unsigned char>(said[end]) & 0xC0) == 0x80) --end;
    said = said.substr(0, end) + "…";
  }
  std::string out = app->get_name() + ": " + said + "\n'" + app->get_name();
  out += commands_of(*app).empty() ? " --help" : " help" + command;
  return out + "' lists the " + (lists_commands ? "commands" : "options") + "\n";
}

std::string bash_completion(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string names;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    names += command->get_name() + " ";
    cases += "    " + command->get_name() + ") options=\"";
    for (const CLI::Option* option : options_of(*command)) {
      for (const std::string& one : option->get_lnames()) cases += "--" + one + " ";
    }
    cases += "\" ;;\n";
  }
  return "# bash completion for " + name + "\n_" + name + "() {\n" +
         "  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options=\"\"\n" +
         "  local commands=\"help " + names + "\"\n" +
         "  if [ \"$COMP_CWORD\" = 1 ] || { [ \"$command\" = help ] && [ \"$COMP_CWORD\" = 2 ]; }; "
         "then\n    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\")\n    return\n"
         "  fi\n  case $command in\n" +
         cases +
         "  esac\n  case $word in\n"
         "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
         "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n  esac\n}\n"
         "complete -o filenames -F _" +
         name + " " + name + "\n";
}

std::string nearest_command(const CLI::App& app, const std::string& typed) {
  std::string lower = typed;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string best;
  size_t least = 3;  // more than two edits are not a typing error
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    if (lower.size() > name.size() && lower.compare(0, name.size(), name) == 0) return name;
    const size_t edits = distance(lower.substr(0, 64), name);
    if (edits < least && edits < name.size() - 1) {
      best = name;
      least = edits;
    }
  }
  return best;
}

}  // namespace cli
