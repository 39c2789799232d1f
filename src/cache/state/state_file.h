// SPDX-License-Identifier: Apache-2.0
// The frame of saved caches and sessions: magic, version, named sections of known size and a
// checksum over everything. docs/state-format.md is the whole format. A state is written through a
// StateWriter, to memory or to a file that appears whole or not at all, and read back through a
// StateReader, which trusts nothing: every size is held against what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/status.h"

namespace gen::cache {

/// What a state is of.
enum class StateKind : uint32_t {
  kTensors = 1,     // a cache of kv_cache_update, tensor_provider.h
  kModelCache = 2,  // a cache that a model wrote, kv_cache.h
  kSession = 3,     // tokens and the cache of them
};

class StateWriter;
/// Writes all sections, the same ones each time. Called once to learn sizes and once to write.
using StateContents = std::function<Status(StateWriter& to)>;

/// Bytes that a state of these contents takes. Errors: those of `contents`.
Result<size_t> state_size(const StateContents& contents);
/// Writes a state of state_size() bytes to the start of `out`, which is that large.
Status save_state(StateKind kind, const StateContents& contents, std::span<std::byte> out);
/// Writes a state to a file, which only this user may read if it was not there. Errors: kIo naming
/// it; the file then is as it was.
Status save_state(StateKind kind, const StateContents& contents, const std::string& path);

class StateWriter {
 public:
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  /// A section of four letters and so many bytes, all written by `fill`, which is not called when
  /// only sizes are asked for.
  Status section(const char* name, size_t bytes, const StateContents& fill);

  // Within a section:
  Status write(std::span<const std::byte> bytes);
  template <typename T>
  requires std::is_arithmetic_v<T> Status number(T value) {
    return write(std::as_bytes(std::span(&value, 1)));
  }
  Status numbers(std::initializer_list<int32_t> values) {
    return write(std::as_bytes(std::span(values.begin(), values.size())));
  }

 private:
  using Sink = std::function<Status(std::span<const std::byte>)>;
  friend Result<size_t> state_size(const StateContents& contents);
  friend Status save_state(StateKind kind, const StateContents& contents, std::span<std::byte> out);
  friend Status save_state(StateKind kind, const StateContents& contents, const std::string& path);

  explicit StateWriter(Sink sink) : sink_(std::move(sink)) {}
  Status run(StateKind kind, size_t bytes, const StateContents& contents);
  Status flush();

  Sink sink_;  // null when only counting
  size_t bytes_ = 0;
  Checksum sum_;
  std::vector<std::byte> held_;  // not given to the sink yet
};

/// One section as it is read, from its start to its end.
class StateSection {
 public:
  StateSection(const char* name, std::span<const std::byte> bytes) : name_(name), bytes_(bytes) {}

  /// kFormat if so much is not there.
  Result<std::span<const std::byte>> bytes(size_t n);
  template <typename T>
  requires std::is_arithmetic_v<T> Status number(T* out) {
    GEN_ASSIGN(const auto from, bytes(sizeof(T)));
    std::memcpy(out, from.data(), sizeof(T));
    return {};
  }
  Status numbers(std::initializer_list<int32_t*> out) {
    for (int32_t* one : out) GEN_TRY(number(one));
    return {};
  }
  /// kFormat unless exactly `n` more bytes are there: before they are read or memory is made for
  /// them.
  Status expect(size_t n) const;

 private:
  const char* name_;
  std::span<const std::byte> bytes_;
};

/// Threads: a copy reads on its own.
class StateReader {
 public:
  /// Checks magic, version, size and checksum: kFormat naming what is wrong. The bytes must stay.
  static Result<StateReader> open(std::span<const std::byte> state);

  [[nodiscard]] StateKind kind() const noexcept { return kind_; }
  /// Whether there is a next section, and it has that name.
  [[nodiscard]] bool next_is(const char* name) const noexcept;
  /// The next section; kFormat unless it has that name.
  Result<StateSection> section(const char* name);
  /// kFormat if there are more sections.
  Status finish() const;

 private:
  StateReader(StateKind kind, std::span<const std::byte> sections)
      : kind_(kind), sections_(sections) {}

  StateKind kind_;
  std::span<const std::byte> sections_;
};

}  // namespace gen::cache
