// SPDX-License-Identifier: Apache-2.0
// See call_parser.h. Between marks an answer is text or reasoning; only what could be the beginning
// of a mark is held back. Inside a call every byte goes to its reader, and is kept until the call
// is complete, to become text if it is none.
#include "calls/call_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "calls/answer_marks.h"
#include "calls/answer_output.h"
#include "calls/arguments/found_calls.h"
#include "calls/call_reader.h"
#include "calls/message_header.h"
#include "calls/text.h"

namespace gen::calls {
namespace {

constexpr std::string_view kCodeFence = "```";
constexpr size_t kMaxFenceBytes = 32;  // with the language behind it

}  // namespace

class CallParser::Body {
 public:
  Body(std::shared_ptr<const CallFormat> format, std::shared_ptr<const Tools> tools,
       std::string_view opening)
      : format_(std::move(format)),
        tools_(std::move(tools)),
        marks_(*format_),
        reader_(*format_, tools_.get()) {
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
    output_.forget();
    consumed_ = 0;
    opened_ = kept_.size();
  }

  void feed(std::string_view bytes, std::vector<Piece>* out) {
    output_.set_pieces(out);
    input_.append(bytes);
    run(false);
    input_.erase(0, read_);
    read_ = 0;
  }

  void finish(std::vector<Piece>* out) {
    output_.set_pieces(out);
    run(true);
    while (mode_ != Mode::kFree) {
      end_inside();
      run(true);
    }
    output_.finish();
  }

  [[nodiscard]] const Answer& answer() const noexcept { return output_.answer(); }
  [[nodiscard]] bool in_call() const noexcept {
    return mode_ == Mode::kCall || mode_ == Mode::kBare;
  }
  [[nodiscard]] bool in_reasoning() const noexcept { return output_.reasoning(); }

 private:
  enum class Mode : uint8_t {
    kFree,    // text or reasoning
    kFence,   // behind a code fence that may hold calls
    kBare,    // inside brackets that may be calls
    kHeader,  // of a message
    kCall,    // inside a call
    kGap,     // of a section, before its first call or behind one
  };

  // --- the machine ---

  void run(bool last) {
    while (read_ < input_.size()) {
      if (mode_ == Mode::kFree) {
        if (!run_free(last)) return;
        continue;
      }
      const char byte = input_[read_++];
      ++consumed_;
      kept_ += byte;
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
        case Mode::kCall:
          take_call(byte);
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
    const bool bare = format_->bare() && !output_.reasoning();
    for (size_t at = 0; at < all.size(); ++at) {
      const std::string_view rest = all.substr(at);
      if (bare && (rest[0] == '{' || rest[0] == '[')) {
        move_on(at);
        begin_bare();
        return true;
      }
      if (bare && rest.starts_with(kCodeFence)) {
        move_on(at);
        take_code_fence();
        return true;
      }
      const AnswerMarks::Found found = marks_.at(rest, output_.reasoning());
      const bool incomplete = found.incomplete || (bare && kCodeFence.starts_with(rest));
      if (incomplete && !last) {
        move_on(at);
        return false;
      }
      if (found.mark == nullptr) continue;
      move_on(at);
      take_mark(*found.mark);
      return true;
    }
    move_on(all.size());
    return true;
  }

  // The next n bytes are text.
  void move_on(size_t n) {
    output_.emit(std::string_view(input_).substr(read_, n));
    skip(n);
  }
  void skip(size_t n) {
    read_ += n;
    consumed_ += n;
  }

  // What is kept is text after all, but its last `back` bytes, which are read again.
  void become_text(size_t back) {
    mode_ = Mode::kFree;
    const std::string text = std::move(kept_);
    kept_.clear();
    const size_t begin = std::min(std::exchange(opened_, 0), text.size() - back);
    output_.emit(std::string_view(text).substr(begin, text.size() - back - begin));
    push_back(std::string_view(text).substr(text.size() - back));
  }

  // Bytes that were read come again.
  void push_back(std::string_view bytes) {
    consumed_ -= bytes.size();
    if (read_ >= bytes.size()) {
      read_ -= bytes.size();  // they stand there
      return;
    }
    input_.replace(0, read_, bytes);
    read_ = 0;
  }

  // From here on bytes are kept; `mark` is the first of them.
  void keep_from(std::string_view mark) {
    opened_ = 0;
    kept_ = mark;
    call_at_ = consumed_ - mark.size();
  }

  void take_mark(const Mark& mark) {
    skip(mark.text.size());
    switch (mark.kind) {
      case MarkKind::kReasoningOpen:
        output_.turn_to(true, true);
        return;
      case MarkKind::kReasoningClose:
        output_.turn_to(false, false);
        return;
      case MarkKind::kWrapper:
        output_.skip_blanks();
        return;
      case MarkKind::kSection:
        keep_from(mark.text);
        in_section_ = true;
        begin_gap();
        return;
      case MarkKind::kCall:
        keep_from(mark.text);
        in_section_ = false;
        begin_call(true);
        return;
      case MarkKind::kHeader:
        output_.turn_to(false, false);
        begin_header(mark.text);
        return;
      case MarkKind::kMessageEnd:
        output_.turn_to(false, false);
        return;
    }
  }

  // --- messages ---

  void begin_header(std::string_view mark) {
    keep_from(mark);
    header_at_ = mark.size();
    mode_ = Mode::kHeader;
  }

  void take_header(char) {
    const Messages& messages = *format_->messages;
    std::string_view text = std::string_view(kept_).substr(header_at_);
    if (!text.ends_with(messages.header_end)) {
      if (!may_be_header(messages, text)) become_text(0);
      return;
    }
    text.remove_suffix(messages.header_end.size());
    const Header header = read_header(messages, text);
    if (!header.fits || (messages.names_are_text && !header.name.empty())) {
      become_text(0);
      return;
    }
    in_message_ = true;
    if (messages.body_is_arguments && !header.name.empty()) {
      in_section_ = false;
      mode_ = Mode::kCall;
      reader_.begin_body(header.name);
      announce();
      return;
    }
    mode_ = Mode::kFree;
    kept_.clear();
    output_.turn_to(header.reasoning, true);
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
    if (gap_.empty() && is_blank(byte)) return;
    if (gap_.empty() && begins_call(byte)) {
      if (has_call_) keep_from(std::string_view(&byte, 1));
      begin_call(false);
      take_call(byte);
      return;
    }
    gap_ += byte;
    const std::string_view close = mark_of(format_->section.close);
    const std::string_view between = mark_of(format_->between);
    const std::string_view section = mark_of(format_->section.open);
    const std::string_view first =
        format_->call[0].field == Field::kText ? mark_of(format_->call[0].text) : "";
    if (gap_ == close) {
      if (!has_call_) note("a section without a call");
      leave_section();
    } else if (gap_ == first) {
      if (has_call_) keep_from(first);
      begin_call(true);
    } else if (gap_ == between) {
      gap_.clear();
    } else if (gap_ == section) {  // the section before it was not closed
      gap_.clear();
      in_section_ = true;
    } else {
      for (const std::string_view mark : {close, first, between, section}) {
        if (mark.starts_with(gap_)) return;
      }
      if (in_section_) note("a section of calls is not closed");
      leave_gap();
    }
  }

  // Behind a call nothing that belongs to one follows: what follows is text. Before the first call
  // the section's mark is text, too.
  void leave_gap() {
    if (!has_call_) {
      become_text(gap_.size());
      return;
    }
    const std::string back = std::move(gap_);
    leave_section();
    push_back(back);
  }

  void leave_section() {
    mode_ = Mode::kFree;
    gap_.clear();
    kept_.clear();
    has_call_ = false;
    output_.skip_blanks();
  }

  void begin_call(bool behind_mark) {
    mode_ = Mode::kCall;
    reader_.begin(behind_mark);
  }

  void take_call(char byte) {
    const CallReader::State state = reader_.take(byte);
    if (state == CallReader::State::kBad) {
      break_call(reader_.fault(), reader_.back());
      return;
    }
    if (reader_.name_found()) announce();
    output_.add_arguments(reader_.more());
    if (state != CallReader::State::kDone) return;
    if (reader_.unclosed()) note("a call is not closed");
    const std::string back = kept_.substr(kept_.size() - reader_.back());
    end_call();
    push_back(back);
  }

  void announce() {
    announced_ = true;
    output_.begin_call(reader_.call().name);
  }

  void end_call() {
    announced_ = false;
    output_.end_call(std::move(reader_.call()));
    has_call_ = true;
    if (mark_of(format_->section.close).empty()) {
      leave_section();
    } else {
      begin_gap();
    }
  }

  void break_call(const char* fault, size_t back) {
    note(fault);
    if (announced_) output_.break_call();
    announced_ = false;
    has_call_ = false;
    // The mark that opened the call must not open it again.
    become_text(std::min(back, kept_.size() - 1));
  }

  void note(const char* fault) { output_.note(call_at_, fault); }

  // --- calls without marks ---

  void take_code_fence() {
    skip(kCodeFence.size());
    if (fence_open_ && !output_.said_more()) {  // it ends that of a call
      fence_open_ = false;
      output_.skip_blanks();
      return;
    }
    keep_from(kCodeFence);
    mode_ = Mode::kFence;
  }

  void take_fence(char byte) {
    if (byte == '{' || byte == '[') {
      fence_ = kept_.substr(0, kept_.size() - 1);
      push_back(std::string_view(&byte, 1));
      begin_bare();
      return;
    }
    const bool word = (byte >= 'a' && byte <= 'z') || byte == '_' || is_blank(byte);
    if (!word || kept_.size() >= kMaxFenceBytes) become_text(1);
  }

  void begin_bare() {
    found_.emplace(format_->keys);
    mode_ = Mode::kBare;
    if (fence_.empty()) call_at_ = consumed_;
    kept_.clear();
  }

  void take_bare(char byte) {
    const JsonScanner::State state = found_->take(byte, kept_);
    if (state == JsonScanner::State::kMore) return;
    if (state == JsonScanner::State::kDone) {
      end_bare(true);
      return;
    }
    kept_.pop_back();
    end_bare(false);
    push_back(std::string_view(&byte, 1));  // it may begin something
  }

  void end_bare(bool whole) {
    const std::string text = std::move(kept_);
    kept_.clear();
    mode_ = Mode::kFree;
    const std::vector<FoundCalls::Region> regions = found_->regions();
    found_.reset();
    const bool all =
        whole && regions.size() == 1 && regions[0].begin == 0 && regions[0].end == text.size();
    fence_open_ = all && !fence_.empty();
    if (!all) output_.emit(fence_);
    fence_.clear();
    size_t at = 0;
    for (const FoundCalls::Region& region : regions) {
      output_.emit(std::string_view(text).substr(at, region.begin - at));
      at = region.end;
      for (const Call& call : region.calls) {
        output_.begin_call(call.name);
        output_.add_arguments(call.arguments);
        output_.end_call(call);
      }
    }
    output_.emit(std::string_view(text).substr(at));
    output_.mark_place();
  }

  // --- the end of an answer ---

  void end_inside() {
    switch (mode_) {
      case Mode::kBare:
        end_bare(false);
        return;
      case Mode::kGap:
        if (!has_call_) note("the answer ends inside a call");
        leave_gap();
        return;
      case Mode::kCall:
        if (!reader_.may_end()) {
          break_call("the answer ends inside a call", 0);
          return;
        }
        end_call();
        leave_section();
        return;
      default:
        become_text(0);
        return;
    }
  }

  const std::shared_ptr<const CallFormat> format_;
  const std::shared_ptr<const Tools> tools_;
  const AnswerMarks marks_;
  AnswerOutput output_;
  CallReader reader_;

  std::string input_;
  size_t read_ = 0;      // of input_
  size_t consumed_ = 0;  // of the answer
  Mode mode_ = Mode::kFree;
  bool in_message_ = false;  // a header has been read

  size_t opened_ = 0;     // bytes of kept_ that the prompt has written
  std::string kept_;      // of a call or header, or what may become one
  size_t call_at_ = 0;    // where it begins
  size_t header_at_ = 0;  // of kept_, behind the header's mark
  std::string gap_;
  bool in_section_ = false;
  bool has_call_ = false;   // of this section
  bool announced_ = false;  // the call's name was said
  std::string fence_;       // before brackets
  bool fence_open_ = false;
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
