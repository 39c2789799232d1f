// SPDX-License-Identifier: Apache-2.0
// See plain_number.h.
#include "grammar/json/plain_number.h"

namespace gen::grammar {
namespace {

// Above it, digits are no longer counted.
constexpr uint32_t kMaxCounted = 1024;

class NumberWriter {
 public:
  explicit NumberWriter(const PlainNumbers& shape) : shape_(shape) {}

  Dfa run() {
    const uint32_t start = state(false);
    const uint32_t minus = state(false);
    const uint32_t zero = state(true);
    const uint32_t first = state(true);
    edge(start, '-', '-', minus);
    for (const uint32_t from : {start, minus}) {
      if (from == start || !shape_.whole) edge(from, '0', '0', zero);
      edge(from, '1', '9', first);
    }
    const uint32_t behind_e = shape_.whole ? 0 : exponent();
    const uint32_t point = shape_.whole ? 0 : fraction(0);
    if (!shape_.whole) {
      edge(zero, '.', '.', point);
      edge(first, '.', '.', fraction(behind_e));
      e(first, behind_e);
    }
    digits(first, shape_.digits - 1, [&](uint32_t at) {
      if (!shape_.whole) edge(at, '.', '.', point);
    });
    for (Dfa::State& one : made_.states) sort(&one);
    return minimise(std::move(made_));
  }

 private:
  uint32_t state(bool final) {
    made_.states.emplace_back().final = final;
    return static_cast<uint32_t>(made_.states.size() - 1);
  }
  void edge(uint32_t from, char low, char high, uint32_t to) {
    made_.states[from].edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), to});
  }
  void e(uint32_t from, uint32_t to) {
    edge(from, 'E', 'E', to);
    edge(from, 'e', 'e', to);
  }

  // Up to `most` digits after a state, at each of which `visit` may add more.
  template <typename F>
  void digits(uint32_t from, uint32_t most, F&& visit) {
    if (most > kMaxCounted) {
      const uint32_t loop = state(true);
      edge(from, '0', '9', loop);
      edge(loop, '0', '9', loop);
      visit(loop);
      return;
    }
    for (; most > 0; --most) {
      const uint32_t next = state(true);
      edge(from, '0', '9', next);
      visit(next);
      from = next;
    }
  }

  // A state after the point; with an exponent there is one place less.
  uint32_t fraction(uint32_t behind_e) {
    const uint32_t point = state(false);
    uint32_t left = shape_.places;
    digits(point, shape_.places, [&](uint32_t at) {
      if (--left > 0 && behind_e != 0) e(at, behind_e);
    });
    return point;
  }

  // A state after the e.
  uint32_t exponent() {
    const uint32_t begin = state(false);
    const uint32_t sign = state(false);
    edge(begin, '+', '+', sign);
    edge(begin, '-', '-', sign);
    const uint32_t last = state(true);
    const uint32_t two = state(true);  // one more digit may follow
    edge(two, '0', '9', last);
    const uint32_t three = state(true);
    edge(three, '0', '9', two);
    const uint32_t begins_three = state(true);  // after a 3: up to 307
    const uint32_t thirty = state(true);
    edge(begins_three, '0', '0', thirty);
    edge(begins_three, '1', '9', last);
    edge(thirty, '0', '7', last);
    for (const uint32_t from : {begin, sign}) {
      if (shape_.exponent_digits == 3) {
        edge(from, '0', '0', two);
        edge(from, '1', '2', three);
        edge(from, '3', '3', begins_three);
        edge(from, '4', '9', two);
      } else {
        edge(from, '0', '9', shape_.exponent_digits == 2 ? two : last);
      }
    }
    return begin;
  }

  static void sort(Dfa::State* state) {
    std::sort(state->edges.begin(), state->edges.end(),
              [](const ByteEdge& a, const ByteEdge& b) { return a.low < b.low; });
  }

  const PlainNumbers shape_;
  Dfa made_;
};

}  // namespace

Dfa plain_numbers(const PlainNumbers& shape) { return NumberWriter(shape).run(); }

}  // namespace gen::grammar
