// SPDX-License-Identifier: Apache-2.0
// Matcher, see matcher.h.
#include "grammar/matcher/matcher.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace gen::grammar {
namespace {

// After this many new return lists, unused ones are collected.
constexpr size_t kManyLists = 4096;
// Work allowed per byte of a long text, in addition to the limit.
constexpr uint64_t kWorkPerByte = 64;
// For a long text, the number of names that may wait before they are indexed.
constexpr size_t kManyPending = 32;

}  // namespace

Matcher::Matcher(std::shared_ptr<const TokenGrammar> grammar, std::shared_ptr<Past> past)
    : grammar_(std::move(grammar)), past_(std::move(past)), step_(grammar_->machines()) {
  const Machines& machines = grammar_->machines();
  if (machines.json.names) json_ = &grammar_->vocabulary().json_tokens();
  if (machines.json.items || machines.json.within) {
    differ_ = std::make_unique<ItemSearch>(machines, grammar_->limits().items);
  }
}

Matcher::~Matcher() { disown(); }

Matcher::Matcher(Matcher&& other) noexcept = default;

Matcher& Matcher::operator=(Matcher&& other) noexcept {
  if (this == &other) return *this;
  disown();
  grammar_ = std::move(other.grammar_);
  past_ = std::move(other.past_);
  json_ = other.json_;
  differ_ = std::move(other.differ_);
  step_ = std::move(other.step_);
  reader_ = std::move(other.reader_);
  scratch_ = std::move(other.scratch_);
  return *this;
}

Result<Matcher> Matcher::create(std::shared_ptr<const TokenGrammar> grammar) {
  Matcher made(std::move(grammar), std::make_shared<Past>());
  const ListId bottom = made.past_->lists.bottom(kEnd);
  made.step_.begin();
  made.step_.start(made.past_->lists, bottom);
  GEN_TRY(made.finish_step());
  const JsonRules rules = made.grammar_->machines().json;
  JsonState first;
  first.off = rules.within;
  made.reader_.begin(made.past_->json, first, rules);
  if (rules.within) made.differ_->follow(0, made.step_.items(), made.reader_);
  made.push(made.step_.items(), made.step_.ended(), false);
  return made;
}

void Matcher::disown() noexcept {
  if (past_ != nullptr) past_->n_owners.fetch_sub(1, std::memory_order_acq_rel);
  past_.reset();
}

// Called before a change: makes a private copy of what forks share, and drops remains of a failed
// call.
void Matcher::own() {
  if (past_->n_owners.load(std::memory_order_acquire) > 1) {
    auto copy = std::make_shared<Past>();
    copy->lists = past_->lists;
    copy->items = past_->items;
    copy->marks = past_->marks;
    copy->json = past_->json;
    copy->places = past_->places;
    disown();
    past_ = std::move(copy);
  }
  past_->lists.shrink(now().frames);
  if (json_ != nullptr) {
    past_->places.resize(past_->marks.size());
    past_->json.shrink(place());
    read_on_from_here();
  }
}

Matcher Matcher::fork() const {
  Matcher other(grammar_, past_);
  past_->n_owners.fetch_add(1, std::memory_order_acq_rel);
  return other;
}

Status Matcher::finish_step() {
  const size_t most = grammar_->limits().items;
  if (step_.finish(past_->lists, most)) return {};
  return error(Code::kGrammar, "the grammar is too ambiguous: more than %zu items in one place",
               most);
}

void Matcher::push(std::span<const Item> items, bool ended, bool closed) {
  Past& past = *past_;
  Mark mark;
  mark.first = past.marks.empty() ? 0 : now().first + now().count;
  mark.count = items.size();
  mark.frames = past.lists.size();
  mark.ended = ended;
  mark.closed = closed;
  past.items.resize(mark.first);
  past.items.insert(past.items.end(), items.begin(), items.end());
  if (json_ != nullptr) {
    reader_.commit(&past.json);
    past.places.push_back(reader_.state());
  }
  past.marks.push_back(mark);
}

// Puts the items after the bytes into scratch_; false if there are none and the text may not end.
Result<bool> Matcher::read(std::string_view bytes, bool* ended) {
  scratch_.assign(items().begin(), items().end());
  const size_t from = past_->lists.size();
  size_t many = from + kManyLists;
  const uint64_t max_work = step_.work() + grammar_->limits().work + kWorkPerByte * bytes.size();
  for (const char c : bytes) {
    auto byte = static_cast<uint8_t>(c);
    if (json_ != nullptr) {
      const int wanted = reader_.read(byte);
      if (wanted == JsonReader::kRefused) return false;
      byte = static_cast<uint8_t>(wanted);
      if (reader_.pending() > kManyPending) reader_.commit(&past_->json);
    }
    if (step_.work() > max_work) {
      return error(Code::kGrammar, "%zu bytes take more work than the limit of %llu", bytes.size(),
                   static_cast<unsigned long long>(grammar_->limits().work));
    }
    step_.begin();
    step_.read(past_->lists, scratch_, byte);
    GEN_TRY(finish_step());
    if (step_.dead()) return false;
    scratch_.assign(step_.items().begin(), step_.items().end());
    if (differ_ != nullptr) differ_->follow(byte, scratch_, reader_);
    if (past_->lists.size() > many) {
      past_->lists.compact(from, scratch_);
      many = from + 2 * (past_->lists.size() - from) + kManyLists;
    }
  }
  if (past_->lists.size() > from + bytes.size()) past_->lists.compact(from, scratch_);
  *ended = step_.ended();
  return differ_ == nullptr || differ_->viable(past_->lists, scratch_, reader_);
}

Result<bool> Matcher::accept_bytes(std::string_view bytes) {
  own();
  if (now().closed) {
    if (bytes.empty()) push({}, true, true);
    return bytes.empty();
  }
  bool ended = now().ended;
  if (bytes.empty()) {
    scratch_.assign(items().begin(), items().end());
  } else {
    GEN_ASSIGN(const bool alive, read(bytes, &ended));
    if (!alive) return false;
  }
  push(scratch_, ended, false);
  return true;
}

Result<bool> Matcher::accept_token(int32_t token) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (token < 0 || token >= vocabulary.size()) {
    return error(Code::kOutOfRange, "token %d outside vocabulary of %d", token, vocabulary.size());
  }
  own();
  if (now().closed) {
    if (!vocabulary.is_end(token)) return false;
    push({}, true, true);
    return true;
  }
  const Machines& machines = grammar_->machines();
  named_.clear();
  bool ended = false;
  if (!machines.token_edges.empty()) {
    step_.begin();
    for (const Item item : items()) {
      for (const TokenEdge& edge : machines.tokens(item.state)) {
        if (grammar_->matches(edge.term, token)) step_.arrive(past_->lists, edge.target, item.list);
      }
    }
    GEN_TRY(finish_step());
    named_.assign(step_.items().begin(), step_.items().end());
    ended = step_.ended();
  }
  const std::string_view bytes = vocabulary.bytes(token);
  scratch_.clear();
  // If the bytes may also continue otherwise, it is ambiguous whose text it is.
  if (bytes.empty() && differ_ != nullptr) differ_->follow(0, named_, reader_);
  if (!bytes.empty()) {
    bool ended_by_bytes = false;
    GEN_ASSIGN(const bool alive, read(bytes, &ended_by_bytes));
    if (!alive) {
      scratch_.clear();
      if (json_ != nullptr) read_on_from_here();
      if (differ_ != nullptr) differ_->follow(0, named_, reader_);
    }
    ended |= ended_by_bytes;
  }
  if (!named_.empty()) {
    scratch_.insert(scratch_.end(), named_.begin(), named_.end());
    const auto key = [](Item item) { return std::tuple(item.state, item.list); };
    std::sort(scratch_.begin(), scratch_.end(), [&](Item a, Item b) { return key(a) < key(b); });
    scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
  }
  if (!scratch_.empty() || ended) {
    push(scratch_, ended, false);
    return true;
  }
  if (!vocabulary.is_end(token) || !now().ended) return false;
  push({}, true, true);
  return true;
}

Status Matcher::rollback(size_t count) {
  if (count > accepted()) {
    return error(Code::kOutOfRange, "rollback of %zu, %zu were accepted", count, accepted());
  }
  own();
  past_->marks.resize(past_->marks.size() - count);
  past_->lists.shrink(now().frames);
  if (json_ != nullptr) {
    past_->places.resize(past_->marks.size());
    past_->json.shrink(place());
  }
  return {};
}

void Matcher::reset() {
  const Status status = rollback(accepted());
  GEN_ASSERT(status.ok());
}

Status Matcher::check_words(size_t words) const {
  const size_t needed = grammar_->vocabulary().words();
  if (words == needed) return {};
  return error(Code::kInvalidArgument, "mask of %zu words, needed are %zu", words, needed);
}

Status Matcher::mask(std::span<uint64_t> bits) const {
  GEN_TRY(check_words(bits.size()));
  std::fill(bits.begin(), bits.end(), 0);
  if (!now().closed) GEN_TRY(grammar_->mask(past_->lists, items(), bits));
  if (json_ != nullptr) forbid(bits);
  if (now().ended) allow_ends(bits);
  return {};
}

bool Matcher::asks_for(int32_t token) const noexcept {
  const Machines& machines = grammar_->machines();
  if (machines.token_edges.empty()) return false;
  for (const Item item : items()) {
    for (const TokenEdge& edge : machines.tokens(item.state)) {
      if (!machines.terms[edge.term].negated && grammar_->matches(edge.term, token)) return true;
    }
  }
  return false;
}

// An end token that the grammar asks for continues the text; the grammar's own mask decides about
// it.
void Matcher::allow_ends(std::span<uint64_t> bits) const noexcept {
  for (const int32_t id : grammar_->vocabulary().ends()) {
    if (!asks_for(id)) bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
}

ByteSet Matcher::next_bytes(std::span<const Item> items) const {
  ByteSet valid;
  for (const Item item : items) {
    for (const ByteEdge& edge : grammar_->machines().bytes(item.state)) {
      if (!step_.can_come(past_->lists, edge.target, item.list)) continue;
      valid.add(ByteSet::range(edge.low, edge.high));
    }
  }
  if (json_ != nullptr && reader_.name_is_taken()) valid.remove('"');
  if (differ_ == nullptr) return valid;
  if (reader_.state().n_held > 0) {
    // Signals may replace these bytes.
    for (const char c : std::string_view(",]")) valid.add(static_cast<uint8_t>(c));
    return differ_->possible(past_->lists, items, reader_, valid);
  }
  for (int byte = kFirstSignal; byte < 256; ++byte) valid.remove(static_cast<uint8_t>(byte));
  // After a comma an item must follow, and there may be no new one left.
  if (reader_.state().n_watched == 0 || !valid.has(static_cast<uint8_t>(','))) return valid;
  valid.remove(static_cast<uint8_t>(','));
  const ByteSet comma = ByteSet::one(',');
  valid.add(differ_->possible(past_->lists, items, reader_, comma));
  return valid;
}

ByteSet Matcher::valid_bytes() const {
  if (json_ != nullptr) read_on_from_here();
  return next_bytes(items());
}

Result<std::string> Matcher::forced_bytes(size_t most) {
  own();
  const Machines& machines = grammar_->machines();
  std::string forced;
  scratch_.assign(items().begin(), items().end());
  bool ended = now().ended;
  while (!ended && forced.size() < most) {
    const ByteSet valid = next_bytes(scratch_);
    const bool tokens = std::any_of(scratch_.begin(), scratch_.end(), [&](Item item) {
      return !machines.tokens(item.state).empty();
    });
    if (tokens || valid.count() != 1) break;
    int byte = 0;
    while (!valid.has(static_cast<uint8_t>(byte))) ++byte;
    const int wanted = json_ != nullptr ? reader_.read(static_cast<uint8_t>(byte)) : byte;
    step_.begin();
    step_.read(past_->lists, scratch_, static_cast<uint8_t>(wanted));
    GEN_TRY(finish_step());
    scratch_.assign(step_.items().begin(), step_.items().end());
    if (differ_ != nullptr) differ_->follow(static_cast<uint8_t>(byte), scratch_, reader_);
    ended = step_.ended();
    forced.push_back(static_cast<char>(byte));
  }
  past_->lists.shrink(now().frames);
  return forced;
}

uint64_t Matcher::min_bytes() const noexcept {
  if (now().ended) return 0;
  return shortest(grammar_->machines(), past_->lists, items());
}

}  // namespace gen::grammar
