// SPDX-License-Identifier: Apache-2.0
// GgufRewrite: a good GGUF file taken apart, to be written again with other names. It knows the
// format on its own and shares nothing with the reader that it tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::test {

class GgufRewrite {
 public:
  struct Entry {
    std::string key;
    std::string typed;  // type and value
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type;
    std::string data;  // with what pads it
  };

  explicit GgufRewrite(std::span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {
    at_ = 8;
    const auto tensor_count = take<uint64_t>();
    const auto entry_count = take<uint64_t>();
    for (uint64_t i = 0; i < entry_count; ++i) {
      std::string key = take_text();
      const size_t begin = at_;
      skip_value(take<uint32_t>());
      entries.push_back({std::move(key), std::string(bytes_.substr(begin, at_ - begin))});
    }
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count; ++i) {
      Tensor tensor;
      tensor.name = take_text();
      tensor.dims.resize(take<uint32_t>());
      for (uint64_t& n : tensor.dims) n = take<uint64_t>();
      tensor.type = take<uint32_t>();
      offsets.push_back(take<uint64_t>());
      tensors.push_back(std::move(tensor));
    }
    const size_t data = (at_ + 31) / 32 * 32;
    for (size_t i = 0; i < offsets.size(); ++i) {  // in file order
      const size_t end = i + 1 < offsets.size() ? data + offsets[i + 1] : bytes_.size();
      tensors[i].data = bytes_.substr(data + offsets[i], end - data - offsets[i]);
    }
  }

  [[nodiscard]] std::vector<std::byte> build() const {
    std::string out = "GGUF";
    add(&out, uint32_t{3});
    add(&out, uint64_t{tensors.size()});
    add(&out, uint64_t{entries.size()});
    for (const Entry& entry : entries) {
      add_text(&out, entry.key);
      out += entry.typed;
    }
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors) {
      add_text(&out, tensor.name);
      add(&out, static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t n : tensor.dims) add(&out, n);
      add(&out, tensor.type);
      add(&out, offset);
      offset += (tensor.data.size() + 31) / 32 * 32;
    }
    pad(&out);
    for (const Tensor& tensor : tensors) {
      pad(&out);
      out += tensor.data;
    }
    const auto bytes = std::as_bytes(std::span(out));
    return {bytes.begin(), bytes.end()};
  }

  Entry* find(std::string_view key) {
    for (Entry& entry : entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }
  Tensor* tensor(std::string_view name) {
    for (Tensor& each : tensors) {
      if (each.name == name) return &each;
    }
    return nullptr;
  }
  void drop(std::string_view key) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
  }
  void rename(std::string_view from, std::string_view to) {
    if (Entry* const entry = find(from)) entry->key = to;
  }
  void set(std::string_view key, uint32_t value) { put(key, 4, raw(value)); }
  void set(std::string_view key, float value) { put(key, 6, raw(value)); }
  void set(std::string_view key, bool value) { put(key, 7, raw(static_cast<uint8_t>(value))); }
  void set(std::string_view key, const char* value) {
    std::string text;
    add_text(&text, value);
    put(key, 8, text);
  }
  void set(std::string_view key, const std::vector<uint32_t>& values) {
    std::string array = raw(uint32_t{4}) + raw(uint64_t{values.size()});
    for (const uint32_t value : values) array += raw(value);
    put(key, 9, array);
  }
  /// More elements of an array, as the file has them.
  void extend(std::string_view key, uint64_t count, const std::string& elements) {
    std::string& typed = find(key)->typed;
    uint64_t length = 0;
    std::memcpy(&length, typed.data() + 8, sizeof length);
    length += count;
    std::memcpy(typed.data() + 8, &length, sizeof length);
    typed += elements;
  }
  /// The architecture and the keys below it.
  void set_architecture(const std::string& from, const std::string& to) {
    set("general.architecture", to.c_str());
    for (Entry& entry : entries) {
      if (entry.key.starts_with(from + ".")) entry.key = to + entry.key.substr(from.size());
    }
  }
  /// In the names of all tensors.
  void rename_part(std::string_view from, std::string_view to) {
    for (Tensor& each : tensors) {
      const size_t found = each.name.find(from);
      if (found != std::string::npos) each.name.replace(found, from.size(), to);
    }
  }
  /// F32, of ones.
  void add_tensor(std::string name, uint64_t n) {
    std::string data;
    for (uint64_t i = 0; i < n; ++i) data += raw(1.0F);
    tensors.push_back({std::move(name), {n}, 0, std::move(data)});
  }

  template <typename T>
  static std::string raw(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
  }
  static std::string text(std::string_view value) {
    std::string out;
    add_text(&out, value);
    return out;
  }

  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

 private:
  template <typename T>
  static void add(std::string* out, T value) {
    *out += raw(value);
  }
  static void add_text(std::string* out, std::string_view value) {
    add(out, uint64_t{value.size()});
    out->append(value);
  }
  static void pad(std::string* out) { out->resize((out->size() + 31) / 32 * 32); }
  void put(std::string_view key, uint32_t type, const std::string& value) {
    Entry* entry = find(key);
    if (entry == nullptr) entry = &entries.emplace_back(Entry{std::string(key), {}});
    entry->typed = raw(type) + value;
  }
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take_text() {
    const auto length = take<uint64_t>();
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  void skip_value(uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      take_text();
    } else if (type == 9) {
      const auto element = take<uint32_t>();
      const auto count = take<uint64_t>();
      for (uint64_t i = 0; i < count; ++i) skip_value(element);
    } else {
      at_ += kSizes[type];
    }
  }

  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace gen::test
