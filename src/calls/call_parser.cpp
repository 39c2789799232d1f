// SPDX-License-Identifier: Apache-2.0
// See call_parser.h. Between marks an answer is text or reasoning; only what could be the beginning
// of a mark is held back. Inside a call every byte goes to a reader of that part of the call, and
// is kept until the call is complete, to become text if it is none.
#include "calls/call_parser.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/found_calls.h"
#include "calls/arguments/object_reader.h"
#include "calls/message_header.h"

namespace gen::calls {
namespace {

constexpr size_t kMaxCallNameBytes = 256;
constexpr size_t kMaxFaults = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

// functions.NAME:INDEX, as models really write it: NAME alone, functions.NAME,
// functions_NAME_INDEX.
std::string name_of_index(std::string_view text) {
  for (const std::string_view lead : {"functions.", "functions_"}) {
    if (!text.starts_with(lead)) continue;
    text.remove_prefix(lead.size());
    const size_t digits = text.find_last_not_of("0123456789");
    if (lead.back() == '_' && digits != std::string_view::npos && digits + 1 < text.size() &&
        text[digits] == '_') {
      text = text.substr(0, digits);
    }
    break;
  }
  const size_t colon = text.rfind(':');
  return std::string(text.substr(0, colon));
}

}  // namespace

class CallParser::Body {
 public:
  Body(std::shared_ptr<const CallFormat> format, std::shared_ptr<const Tools> tools,
       std::string_view opening)
      : format_(std::move(format)), tools_(std::move(tools)) {
    find_marks();
    if (opening.empty()) {
      if (format_->messages) begin_header("");
      return;
    }
    std::vector<Piece> unused;
    feed(opening, &unused);
    if (mode_ == Mode::kFree) {  // what is held back is no mark of the answer
      input_.clear();
      read_ = 0;
      if (format_->messages && !in_message_) begin_header("");
    }
    answer_ = {};
    consumed_ = 0;
    spaces_.clear();
  }

  void feed(std::string_view bytes, std::vector<Piece>* out) {
    out_ = out;
    input_.append(bytes);
    run(false);
    input_.erase(0, read_);
    read_ = 0;
  }

  void finish(std::vector<Piece>* out) {
    out_ = out;
    run(true);
    while (mode_ != Mode::kFree) {
      end_inside();
      run(true);
    }
    if (answer_.calls.empty()) {
      flush_spaces();
    } else {
      const size_t begin = std::min(answer_.text.find_first_not_of(" \t\r\n"), answer_.text.size());
      answer_.text.erase(0, begin);
    }
  }

  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }
  [[nodiscard]] bool in_call() const noexcept {
    return mode_ == Mode::kPart || mode_ == Mode::kBare;
  }
  [[nodiscard]] bool in_reasoning() const noexcept { return reasoning_; }

 private:
  enum class MarkKind : uint8_t {
    kReasoningOpen,
    kReasoningClose,
    kWrapper,
    kSection,
    kCall,  // the first mark of a call whose section's mark is missing
    kHeader,
    kMessageEnd,
  };

  struct Mark {
    MarkKind kind;
    std::string_view text;
  };

  enum class Mode : uint8_t {
    kFree,    // text or reasoning
    kFence,   // behind a code fence that may hold calls
    kBare,    // inside brackets that may be calls
    kHeader,  // of a message
    kPart,    // inside a call
    kGap,     // of a section, before its first call or behind one
  };
  using State = ArgumentReader::State;

  // --- marks ---

  void find_marks() {
    const CallFormat& format = *format_;
    const auto add = [&](MarkKind kind, std::string_view text, bool in_reasoning) {
      text = trimmed(text);
      if (text.empty()) return;
      text_marks_.push_back({kind, text});
      if (in_reasoning) reasoning_marks_.push_back({kind, text});
    };
    for (const Marks& one : format.reasoning) {
      add(MarkKind::kReasoningOpen, one.open, false);
      const std::string_view close = trimmed(one.close);
      if (!close.empty()) reasoning_marks_.push_back({MarkKind::kReasoningClose, close});
    }
    for (const Marks& wrapper : format.wrappers) {
      add(MarkKind::kWrapper, wrapper.open, false);
      add(MarkKind::kWrapper, wrapper.close, false);
    }
    if (format.messages) {
      for (const auto& mark : format.messages->starts) add(MarkKind::kHeader, mark, true);
      for (const auto& mark : format.messages->ends) add(MarkKind::kMessageEnd, mark, true);
    }
    add(MarkKind::kSection, format.section.open, true);
    for (const std::string& open : format.openings) add(MarkKind::kSection, open, true);
    if (!format.call.empty() && format.call[0].field == Field::kText) {
      add(MarkKind::kCall, format.call[0].text, true);
    }
  }

  [[nodiscard]] const std::vector<Mark>& marks() const noexcept {
    return reasoning_ ? reasoning_marks_ : text_marks_;
  }

  // --- output ---

  void add_piece(PieceKind kind, std::string_view text) {
    const size_t call = answer_.calls.size();
    if (text.empty() && kind <= PieceKind::kReasoning) return;
    if (!out_->empty() && out_->back().kind == kind && out_->back().call == call &&
        (kind <= PieceKind::kReasoning || kind == PieceKind::kArguments)) {
      out_->back().text += text;
    } else {
      out_->push_back({kind, call, std::string(text)});
    }
  }

  void say(std::string_view text) {
    (reasoning_ ? answer_.reasoning : answer_.text) += text;
    add_piece(reasoning_ ? PieceKind::kReasoning : PieceKind::kText, text);
  }

  void flush_spaces() {
    say(spaces_);
    spaces_.clear();
  }

  // Text or reasoning. White space is held back until more follows it, since none belongs before a
  // mark.
  void emit(std::string_view text) {
    if (skip_spaces_) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
      if (text.empty()) return;
      skip_spaces_ = false;
    }
    size_t end = text.size();
    while (end > 0 && is_space(text[end - 1])) --end;
    if (end > 0) {
      fence_ends_ = false;
      flush_spaces();
      if (new_stretch_) {
        new_stretch_ = false;
        if (!(reasoning_ ? answer_.reasoning : answer_.text).empty()) say("\n");
      }
      say(text.substr(0, end));
    }
    spaces_ += text.substr(end);
  }

  void note(const char* what) {
    if (answer_.faults.size() < kMaxFaults) answer_.faults.push_back({call_at_, what});
  }

  // --- the machine ---

  void run(bool last) {
    while (read_ < input_.size()) {
      if (mode_ == Mode::kFree) {
        if (!run_free(last)) return;
        continue;
      }
      const char byte = input_[read_++];
      ++consumed_;
      switch (mode_) {
        case Mode::kFence:
          take_fence(byte);
          break;
        case Mode::kBare:
          take_bare(byte);
          break;
        case Mode::kHeader:
          take_header(byte);
          break;
        case Mode::kPart:
          take_part(byte);
          break;
        default:
          take_gap(byte);
          break;
      }
    }
  }

  // False if what is left may be the beginning of a mark.
  bool run_free(bool last) {
    const std::string_view all = std::string_view(input_).substr(read_);
    const bool bare = format_->bare() && !reasoning_;
    for (size_t at = 0; at < all.size(); ++at) {
      const std::string_view rest = all.substr(at);
      if (bare && (rest[0] == '{' || rest[0] == '[')) {
        move_on(at);
        begin_bare();
        return true;
      }
      if (bare && rest[0] == '`') {
        constexpr std::string_view kFence = "```";
        if (rest.starts_with(kFence)) {
          move_on(at);
          if (fence_ends_) {  // of the call before it
            fence_ends_ = false;
            skip_spaces_ = true;
            skip(kFence.size());
            return true;
          }
          raw_ = kFence;
          call_at_ = consumed_;
          skip(kFence.size());
          mode_ = Mode::kFence;
          return true;
        }
        if (kFence.starts_with(rest) && !last) return hold(at);
      }
      for (const Mark& mark : marks()) {
        if (mark.text[0] != rest[0]) continue;
        if (rest.starts_with(mark.text)) {
          const Mark* longest = &mark;
          bool open = false;  // a longer mark may come
          for (const Mark& other : marks()) {
            if (other.text.size() <= longest->text.size()) continue;
            if (rest.starts_with(other.text)) longest = &other;
            open |= other.text.starts_with(rest);
          }
          if (open && !last) return hold(at);
          move_on(at);
          take_mark(*longest);
          return true;
        }
        if (mark.text.starts_with(rest) && !last) return hold(at);
      }
    }
    move_on(all.size());
    return true;
  }

  // The next n bytes are text.
  void move_on(size_t n) {
    emit(std::string_view(input_).substr(read_, n));
    skip(n);
  }
  void skip(size_t n) {
    read_ += n;
    consumed_ += n;
  }
  bool hold(size_t n) {
    move_on(n);
    return false;
  }

  void take_mark(const Mark& mark) {
    const size_t begin = consumed_;
    skip(mark.text.size());
    switch (mark.kind) {
      case MarkKind::kReasoningOpen:
        reasoning_ = new_stretch_ = skip_spaces_ = true;
        spaces_.clear();
        return;
      case MarkKind::kReasoningClose:
        spaces_.clear();
        reasoning_ = false;
        skip_spaces_ = true;
        return;
      case MarkKind::kWrapper:
        skip_spaces_ = true;
        return;
      case MarkKind::kSection:
        call_at_ = begin;
        raw_ = mark.text;
        in_section_ = true;
        begin_gap();
        return;
      case MarkKind::kCall:
        call_at_ = begin;
        raw_ = mark.text;
        in_section_ = false;
        begin_call(1);
        return;
      case MarkKind::kHeader:
        end_message();
        call_at_ = begin;
        begin_header(mark.text);
        return;
      case MarkKind::kMessageEnd:
        end_message();
        return;
    }
  }

  // --- messages ---

  void end_message() {
    spaces_.clear();
    reasoning_ = false;
    skip_spaces_ = true;
  }

  void begin_header(std::string_view mark) {
    header_.clear();
    raw_ = mark;
    mode_ = Mode::kHeader;
  }

  void take_header(char byte) {
    const Messages& messages = *format_->messages;
    raw_ += byte;
    header_ += byte;
    const std::string_view end = messages.header_end;
    if (std::string_view(header_).ends_with(end)) {
      header_.resize(header_.size() - end.size());
      const Header header = read_header(messages, header_);
      if (!header.fits) {
        header_is_text();
        return;
      }
      if (messages.body_is_arguments && !header.name.empty()) {
        begin_body_call(header.name);
        return;
      }
      mode_ = Mode::kFree;
      in_message_ = true;
      reasoning_ = header.reasoning;
      new_stretch_ = skip_spaces_ = true;
      spaces_.clear();
      raw_.clear();
      return;
    }
    if (!may_be_header(messages, header_)) header_is_text();
  }

  void header_is_text() {
    mode_ = Mode::kFree;
    const std::string text = std::move(raw_);
    raw_.clear();
    emit(text);
  }

  void begin_body_call(const std::string& name) {
    parts_ = {};
    in_section_ = false;
    begin_parts();
    found_name(name, {});
    reader_ = make_argument_reader(*format_, tool_, "");
    part_ = kBodyArguments;
    mode_ = Mode::kPart;
  }

  // --- calls with marks ---

  void begin_gap() {
    mode_ = Mode::kGap;
    gap_.clear();
  }

  [[nodiscard]] bool begins_call(char byte) const {
    const Field first = format_->call[0].field;
    return first == Field::kObject ? byte == '{' : first != Field::kText && is_name_byte(byte);
  }

  void take_gap(char byte) {
    raw_ += byte;
    if (gap_.empty() && is_space(byte)) return;
    if (gap_.empty() && begins_call(byte)) {
      begin_call(0);
      take_again(byte);
      return;
    }
    gap_ += byte;
    const std::string_view close = trimmed(format_->section.close);
    const std::string_view between = trimmed(format_->between);
    const std::string_view first =
        format_->call[0].field == Field::kText ? trimmed(format_->call[0].text) : "";
    const std::string_view section = trimmed(format_->section.open);
    if (!close.empty() && gap_ == close) {
      end_section();
      return;
    }
    if (!first.empty() && gap_ == first) {
      begin_call(1);
      return;
    }
    if (!between.empty() && gap_ == between) {
      gap_.clear();
      return;
    }
    if (!section.empty() && gap_ == section) {  // the section before it was not closed
      gap_.clear();
      in_section_ = true;
      return;
    }
    for (const std::string_view mark : {close, first, between, section}) {
      if (mark.starts_with(gap_)) return;
    }
    if (in_section_) note("a section of calls is not closed");
    leave_gap();
  }

  // Behind a call nothing that belongs to one follows: what follows is text. Before the first call
  // the section's mark is text, too.
  void leave_gap() {
    const std::string back = std::move(gap_);
    gap_.clear();
    mode_ = Mode::kFree;
    skip_spaces_ = has_call_;
    if (!has_call_) {
      raw_.resize(raw_.size() - back.size());
      emit(raw_);
    }
    has_call_ = false;
    raw_.clear();
    push_back(back);
  }

  void end_section() {
    mode_ = Mode::kFree;
    gap_.clear();
    if (!has_call_) note("a section without a call");
    has_call_ = false;
    raw_.clear();
    skip_spaces_ = true;
  }

  // Bytes that were read come again.
  void push_back(std::string_view bytes) {
    consumed_ -= bytes.size();
    if (read_ >= bytes.size() &&
        std::string_view(input_).substr(read_ - bytes.size(), bytes.size()) == bytes) {
      read_ -= bytes.size();
      return;
    }
    input_.replace(0, read_, bytes);
    read_ = 0;
  }
  void take_again(char byte) {
    raw_.pop_back();
    push_back(std::string_view(&byte, 1));
  }

  void begin_call(size_t part) {
    if (has_call_) {
      // The bytes of the calls before are no longer needed.
      const std::string_view first = part == 1 ? trimmed(format_->call[0].text)
                                               : std::string_view(raw_).substr(raw_.size() - 1);
      raw_ = std::string(first);
      call_at_ = consumed_ - first.size();
    }
    parts_ = format_->call;
    begin_parts();
    begin_part(part);
  }

  void begin_parts() {
    mode_ = Mode::kPart;
    named_ = false;
    call_ = {};
    tool_ = nullptr;
    object_.reset();
    reader_.reset();
  }

  static constexpr size_t kBodyArguments = SIZE_MAX;  // of a message

  void begin_part(size_t part) {
    part_ = part;
    while (part_ < parts_.size() && parts_[part_].field == Field::kText &&
           trimmed(parts_[part_].text).empty()) {
      ++part_;
    }
    word_.clear();
    if (part_ >= parts_.size()) {
      end_call();
      return;
    }
    const Field field = parts_[part_].field;
    if (field == Field::kObject) object_.emplace(format_->keys);
    if (field == Field::kArguments) {
      const bool marked = part_ + 1 < parts_.size() && parts_[part_ + 1].field == Field::kText;
      reader_ = make_argument_reader(*format_, tool_,
                                     marked ? trimmed(parts_[part_ + 1].text) : std::string_view());
    }
  }

  void found_name(std::string name, std::string id) {
    named_ = true;
    call_.name = std::move(name);
    call_.id = std::move(id);
    if (tools_ != nullptr) tool_ = find_tool(*tools_, call_.name);
    add_piece(PieceKind::kCallName, call_.name);
  }

  void take_part(char byte) {
    raw_ += byte;
    if (part_ == kBodyArguments) {
      take_arguments(byte);
      return;
    }
    switch (parts_[part_].field) {
      case Field::kText:
        take_text(byte);
        return;
      case Field::kObject:
        take_object(byte);
        return;
      case Field::kArguments:
        take_arguments(byte);
        return;
      default:
        take_word(byte);
        return;
    }
  }

  void take_text(char byte) {
    const std::string_view mark = trimmed(parts_[part_].text);
    if (word_.empty() && is_space(byte)) return;
    word_ += byte;
    if (word_ == mark) {
      begin_part(part_ + 1);
    } else if (!mark.starts_with(word_)) {
      // A call whose last mark is missing is complete.
      const std::string back = std::move(word_);
      word_.clear();
      if (all_read()) {
        raw_.resize(raw_.size() - back.size());
        note("a call is not closed");
        push_back(back);
        end_call();
      } else {
        break_call("a mark of a call is missing", back.size());
      }
    }
  }

  // Whether only marks are missing.
  [[nodiscard]] bool all_read() const {
    return named_ && std::all_of(parts_.begin() + static_cast<std::ptrdiff_t>(part_), parts_.end(),
                                 [](const Part& part) { return part.field == Field::kText; });
  }

  void take_word(char byte) {
    const Field field = parts_[part_].field;
    if (word_.empty() && is_space(byte)) return;
    const bool fits = is_name_byte(byte) || (field != Field::kName && byte == ':');
    if (fits && word_.size() < kMaxCallNameBytes) {
      word_ += byte;
      return;
    }
    if (word_.empty() || fits) {
      break_call(field == Field::kId ? "a call's id is missing" : "a call's name is missing", 1);
      return;
    }
    if (field == Field::kId) {
      call_.id = word_;
    } else if (field == Field::kIndexedName) {
      found_name(name_of_index(word_), word_);
    } else {
      found_name(word_, call_.id);
    }
    begin_part(part_ + 1);
    if (mode_ == Mode::kPart) {
      take_again(byte);
    }
  }

  void take_object(char byte) {
    std::string more;
    const State state = object_->take(byte, &more);
    if (state == State::kBad) {
      break_call(object_->fault(), 1);
      return;
    }
    if (!named_ && !object_->name().empty()) found_name(object_->name(), {});
    add_arguments(more);
    if (state != State::kDone) return;
    call_.id = object_->id();
    begin_part(part_ + 1);
  }

  void add_arguments(std::string_view more) {
    if (more.empty()) return;
    call_.arguments += more;
    add_piece(PieceKind::kArguments, more);
  }

  void take_arguments(char byte) {
    std::string more;
    const State state = reader_->take(byte, &more);
    if (state == State::kBad) {
      break_call(reader_->fault(), 1);
      return;
    }
    add_arguments(more);
    if (state != State::kDone) return;
    if (part_ == kBodyArguments) {
      end_call();
      return;
    }
    const bool took_mark = format_->syntax == Syntax::kTagged ||
                           format_->syntax == Syntax::kPython || format_->syntax == Syntax::kNested;
    begin_part(part_ + (took_mark ? 2 : 1));
  }

  void end_call() {
    add_piece(PieceKind::kCallEnd, {});
    answer_.calls.push_back(std::move(call_));
    call_ = {};
    named_ = false;
    has_call_ = true;
    reader_.reset();
    object_.reset();
    const bool section = !trimmed(format_->section.close).empty();
    if (section) {
      begin_gap();
      return;
    }
    has_call_ = false;
    mode_ = Mode::kFree;
    skip_spaces_ = true;
    raw_.clear();
  }

  // What was read of the call is text; its last `back` bytes are read again.
  void break_call(const char* what, size_t back) {
    note(what);
    if (named_) add_piece(PieceKind::kCallBroken, {});
    named_ = false;
    has_call_ = false;
    call_ = {};
    reader_.reset();
    object_.reset();
    mode_ = Mode::kFree;
    std::string text = std::move(raw_);
    raw_.clear();
    // The mark that opened the call must not open it again.
    back = std::min(back, text.size() - 1);
    const std::string again = text.substr(text.size() - back);
    text.resize(text.size() - back);
    emit(text);
    push_back(again);
  }

  // --- calls without marks ---

  void begin_bare() {
    found_.emplace(format_->keys);
    mode_ = Mode::kBare;
    if (fence_.empty()) {
      call_at_ = consumed_;
    }
    raw_.clear();
  }

  void take_fence(char byte) {
    raw_ += byte;
    if (byte == '{' || byte == '[') {
      fence_ = raw_.substr(0, raw_.size() - 1);
      raw_.clear();
      push_back(std::string_view(&byte, 1));
      begin_bare();
      return;
    }
    const bool word = (byte >= 'a' && byte <= 'z') || byte == '_' || is_space(byte);
    if (word && raw_.size() < 32) return;
    const std::string text = std::move(raw_);
    raw_.clear();
    mode_ = Mode::kFree;
    emit(std::string_view(text).substr(0, text.size() - 1));
    push_back(std::string_view(&byte, 1));
  }

  void take_bare(char byte) {
    raw_ += byte;
    const State state = found_->take(byte, raw_);
    if (state == State::kMore) return;
    if (state == State::kBad) {
      raw_.pop_back();
      end_bare(false);
      // A bracket that fits nowhere may begin something.
      push_back(std::string_view(&byte, 1));
      return;
    }
    end_bare(true);
  }

  void end_bare(bool whole) {
    const std::string text = std::move(raw_);
    raw_.clear();
    mode_ = Mode::kFree;
    const std::vector<FoundCalls::Region> regions = found_->regions();
    found_.reset();
    std::string fence = std::move(fence_);
    fence_.clear();
    const bool all =
        whole && regions.size() == 1 && regions[0].begin == 0 && regions[0].end == text.size();
    if (!all) {
      emit(fence);
      fence.clear();
    }
    size_t at = 0;
    for (const FoundCalls::Region& region : regions) {
      emit(std::string_view(text).substr(at, region.begin - at));
      at = region.end;
      for (const Call& call : region.calls) {
        add_piece(PieceKind::kCallName, call.name);
        add_piece(PieceKind::kArguments, call.arguments);
        add_piece(PieceKind::kCallEnd, {});
        answer_.calls.push_back(call);
      }
    }
    emit(std::string_view(text).substr(at));
    fence_ends_ = !fence.empty();
  }

  // --- the end of an answer ---

  void end_inside() {
    switch (mode_) {
      case Mode::kFence: {
        const std::string text = std::move(raw_);
        raw_.clear();
        mode_ = Mode::kFree;
        emit(text);
        return;
      }
      case Mode::kBare:
        end_bare(false);
        return;
      case Mode::kHeader:
        header_is_text();
        return;
      case Mode::kGap:
        if (!has_call_) note("the answer ends inside a call");
        leave_gap();
        return;
      default:
        if (part_ != kBodyArguments && parts_[part_].field == Field::kText && all_read()) {
          end_call();
          if (mode_ == Mode::kGap) end_section();
          return;
        }
        break_call("the answer ends inside a call", 0);
        return;
    }
  }

  const std::shared_ptr<const CallFormat> format_;
  const std::shared_ptr<const Tools> tools_;
  std::vector<Mark> text_marks_;
  std::vector<Mark> reasoning_marks_;

  std::vector<Piece>* out_ = nullptr;
  Answer answer_;
  std::string input_;
  size_t read_ = 0;      // of input_
  size_t consumed_ = 0;  // of the answer
  Mode mode_ = Mode::kFree;
  bool reasoning_ = false;
  bool in_message_ = false;  // a header has been read
  bool skip_spaces_ = false;
  bool new_stretch_ = false;
  bool fence_ends_ = false;
  std::string spaces_;  // white space that more text may follow

  // Of a call, or what may become one.
  size_t call_at_ = 0;
  std::string raw_;  // its bytes
  std::string gap_;
  std::string header_;
  std::string fence_;
  bool in_section_ = false;
  bool has_call_ = false;  // of this section
  std::vector<Part> parts_;
  size_t part_ = 0;
  std::string word_;
  bool named_ = false;
  Call call_;
  const Tool* tool_ = nullptr;
  std::optional<ObjectReader> object_;
  std::unique_ptr<ArgumentReader> reader_;
  std::optional<FoundCalls> found_;
};

CallParser::CallParser(std::shared_ptr<const CallFormat> format, std::shared_ptr<const Tools> tools,
                       std::string_view opening)
    : body_(std::make_unique<Body>(std::move(format), std::move(tools), opening)) {}
CallParser::~CallParser() = default;
CallParser::CallParser(CallParser&&) noexcept = default;
CallParser& CallParser::operator=(CallParser&&) noexcept = default;

void CallParser::feed(std::string_view bytes, std::vector<Piece>* out) { body_->feed(bytes, out); }
void CallParser::finish(std::vector<Piece>* out) { body_->finish(out); }
const Answer& CallParser::answer() const noexcept { return body_->answer(); }
bool CallParser::in_call() const noexcept { return body_->in_call(); }
bool CallParser::in_reasoning() const noexcept { return body_->in_reasoning(); }

Answer parse_answer(const std::shared_ptr<const CallFormat>& format,
                    const std::shared_ptr<const Tools>& tools, std::string_view answer,
                    std::string_view opening) {
  CallParser parser(format, tools, opening);
  std::vector<Piece> pieces;
  parser.feed(answer, &pieces);
  parser.finish(&pieces);
  return parser.answer();
}

}  // namespace gen::calls
