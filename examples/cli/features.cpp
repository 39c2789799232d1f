// SPDX-License-Identifier: Apache-2.0
// generate features: a model's hidden states of texts, for the training of heads. The file is an
// array of numpy (.npy, version 1.0) with one record for each token, written as it is computed:
// "token", "position" in its window, and one field for each layer.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "input_files.h"
#include "model_file.h"
#include "option_help.h"
#include "output.h"
#include "progress_bar.h"
#include "text_file.h"
#include "text_format.h"

namespace cli {
namespace {

constexpr size_t kFeatureRows = 128;  // tokens in one forward pass

struct Features {
  ModelChoice model;
  std::vector<std::string> texts;
  std::string out;
  std::vector<int32_t> layers;
  bool normed = false;
  int32_t window = 0;
  bool json = false;
  std::string type = "f32";
};

// The signal handler's state.
volatile std::sig_atomic_t features_stopped = 0;

extern "C" void stop_features(int signal) {
  features_stopped = 1;
  std::signal(signal, SIG_DFL);
}

std::string field_of(int32_t layer) {
  return layer == GEN_HIDDEN_NORMED ? "normed" : "layer_" + std::to_string(layer);
}

/// The nearest half-precision number, to even; `x` must be less than 65520.
uint16_t half_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t size = bits & 0x7fffffff;
  if (size < 0x38800000) {  // a multiple of 2^-24
    return static_cast<uint16_t>(sign | std::lrint(std::bit_cast<float>(size) * 0x1p24F));
  }
  return static_cast<uint16_t>(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}

/// A file that is there as a whole or not at all.
class RecordFile {
 public:
  RecordFile(std::string path, const std::vector<int32_t>& layers, size_t width, bool halves)
      : path_(std::move(path)), part_(path_ + ".part"), halves_(halves) {
    fields_ = "('token', '<i4'), ('position', '<i4')";
    for (const int32_t layer : layers) {
      fields_ += ", ('" + field_of(layer) + "', '" + (halves ? "<f2" : "<f4") + "', (" +
                 std::to_string(width) + ",))";
    }
    const std::string first = header();
    file_.reset(std::fopen(part_.c_str(), "wb"));
    if (file_ == nullptr) fail();
    put(first);
  }
  ~RecordFile() { drop(); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// `states` is [layers, rows, width].
  void add(const std::vector<int32_t>& layers, const int32_t* tokens, size_t position, size_t rows,
           const std::vector<float>& states) {
    const size_t width = states.size() / layers.size() / rows;
    std::string record;
    for (size_t row = 0; row < rows; ++row) {
      append(&record, tokens[row]);
      append(&record, static_cast<int32_t>(position + row));
      for (size_t i = 0; i < layers.size(); ++i) {
        const float* const from = states.data() + (i * rows + row) * width;
        if (halves_) {
          append_halves(&record, field_of(layers[i]), from, width);
        } else {
          record.append(reinterpret_cast<const char*>(from), width * sizeof(float));
        }
      }
      ++rows_;
    }
    put(record);
  }

  /// Returns the size in bytes.
  uint64_t finish() {
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail();
    put(header());
    if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail();
    const auto size = static_cast<uint64_t>(std::ftell(file_.get()));
    if (std::fclose(file_.release()) != 0 || std::rename(part_.c_str(), path_.c_str()) != 0) {
      const int reason = errno;
      std::remove(part_.c_str());
      errno = reason;
      fail();
    }
    return size;
  }
  [[nodiscard]] uint64_t rows() const noexcept { return rows_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  /// Its size does not depend on the number of rows, which is known at the end.
  [[nodiscard]] std::string header() const {
    constexpr size_t kAlign = 64;
    std::string text = "{'descr': [" + fields_ + "], 'fortran_order': False, 'shape': (" +
                       format("%20llu", static_cast<unsigned long long>(rows_)) + ",), }";
    text.append(kAlign - (10 + text.size() + 1) % kAlign, ' ') += '\n';
    if (text.size() > 0xffff) throw Failure("--layers: too many for the header of a file");
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(text.size() & 0xff);
    out += static_cast<char>(text.size() >> 8);
    return out + text;
  }
  void append_halves(std::string* to, const std::string& field, const float* from, size_t n) const {
    for (size_t i = 0; i < n; ++i) {
      if (!(std::fabs(from[i]) < 65520.0F)) {
        throw Failure(format("row %llu, %s: %g does not fit f16; --type f32 does",
                             static_cast<unsigned long long>(rows_), field.c_str(),
                             static_cast<double>(from[i])));
      }
      append(to, half_of(from[i]));
    }
  }
  template <typename T>
  static void append(std::string* to, T value) {
    static_assert(std::endian::native == std::endian::little);
    to->append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail();
  }
  void drop() {
    if (file_ == nullptr) return;
    file_.reset();
    std::remove(part_.c_str());
  }
  [[noreturn]] void fail() {
    const int reason = errno;
    drop();
    throw Failure("cannot write " + path_ + ": " + std::system_category().message(reason));
  }

  std::string path_;
  std::string part_;
  std::string fields_;
  bool halves_;
  uint64_t rows_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
};

std::vector<int32_t> encoded(const Model& model, const std::string& text, int32_t flags) {
  const gen_tokenizer* const tokenizer = gen_model_tokenizer(model.get());
  if (tokenizer == nullptr) throw Failure("the model has no tokenizer for --text");
  gen_error error;
  size_t n = 0;
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, nullptr, 0, &n, &error),
        error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), n, &n, &error),
        error);
  return ids;
}

/// The layers in the order of their fields.
std::vector<int32_t> chosen_layers(const Features& options, int32_t most) {
  std::vector<int32_t> layers = options.layers;
  for (const int32_t layer : layers) {
    if (layer < 0 || layer > most) {
      throw Failure(format("--layers: %d outside [0, %d]", layer, most), 2);
    }
    if (std::count(layers.begin(), layers.end(), layer) > 1) {
      throw Failure(format("--layers: %d comes twice", layer), 2);
    }
  }
  if (options.normed) layers.push_back(GEN_HIDDEN_NORMED);
  return layers;
}

/// Writes the states of a text, window by window; each begins as a session does.
class Writer {
 public:
  Writer(const Features& options, const Model& model, std::vector<int32_t> layers)
      : model_(model),
        layers_(std::move(layers)),
        opening_(encoded(model, "", GEN_ENCODE_ADD_BOS)) {
    const gen_model_config* const config = gen_model_get_config(model.get());
    width_ = static_cast<size_t>(gen_model_config_hidden(config));
    const int32_t context = gen_model_config_max_seq_len(config);
    if (options.window > context) {
      throw Failure("--window " + std::to_string(options.window) +
                    " exceeds the model's context of " + std::to_string(context));
    }
    window_ = static_cast<size_t>(options.window > 0 ? options.window : context);
    if (window_ <= opening_.size()) throw Failure("--window has no room for tokens of a text");
    ModelChoice choice = options.model;
    choice.draft = "off";
    cache_ = make_cache(model, choice, static_cast<int32_t>(window_));
    flags_ = options.model.special ? GEN_ENCODE_PARSE_SPECIAL : 0;
  }

  void write(const std::string& path, RecordFile* file) const {
    std::vector<int32_t> tokens;
    try {
      tokens = encoded(model_, text_of_file(path), flags_);
    } catch (const Failure& failure) {
      throw Failure(path + ": " + failure.what());
    }
    const size_t fresh = window_ - opening_.size();
    ProgressBar bar("computing");
    for (size_t begin = 0; begin < tokens.size(); begin += fresh) {
      const size_t end = std::min(begin + fresh, tokens.size());
      std::vector<int32_t> window = opening_;
      window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(end));
      write_window(window, file);
      bar.update(static_cast<double>(end) / static_cast<double>(tokens.size()));
    }
  }

  [[nodiscard]] size_t width() const noexcept { return width_; }
  [[nodiscard]] size_t window() const noexcept { return window_; }

 private:
  void write_window(const std::vector<int32_t>& window, RecordFile* file) const {
    gen_error error;
    check(kv_cache_reset(cache_.get(), &error), error);
    std::vector<float> states;
    for (size_t begin = 0; begin < window.size(); begin += kFeatureRows) {
      if (features_stopped != 0) throw Failure("stopped", kInterruptedStatus);
      const size_t rows = std::min(kFeatureRows, window.size() - begin);
      states.resize(layers_.size() * rows * width_);
      check(gen_model_forward_hidden(model_.get(), window.data() + begin, rows, cache_.get(),
                                     layers_.data(), layers_.size(), states.data(), states.size(),
                                     &error),
            error);
      file->add(layers_, window.data() + begin, begin, rows, states);
    }
  }

  const Model& model_;
  std::vector<int32_t> layers_;
  std::vector<int32_t> opening_;
  size_t width_ = 0;
  size_t window_ = 0;
  Cache cache_;
  int32_t flags_ = 0;
};

/// It is written at the end, when what was there is read no more: neither an input nor a device.
void check_features_out(const Features& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(options.out, ignored);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status)) throw Failure("--output " + options.out + ": not a file");
  std::vector<std::string> read = files_of(options.model);
  read.insert(read.end(), options.texts.begin(), options.texts.end());
  check_apart(options.out, "--output", read);
}

void features(const Features& options) {
  check_writable(options.out, "--output");
  check_features_out(options);
  const Model model = load_model(options.model);
  const std::vector<int32_t> layers =
      chosen_layers(options, gen_model_config_num_layers(gen_model_get_config(model.get())));
  const Writer writer(options, model, layers);
  RecordFile file(options.out, layers, writer.width(), options.type == "f16");
  std::signal(SIGINT, stop_features);
  std::signal(SIGTERM, stop_features);
  for (const std::string& path : options.texts) writer.write(path, &file);
  const uint64_t bytes = file.finish();
  if (options.json) {
    nlohmann::ordered_json fields = nlohmann::ordered_json::array();
    for (const int32_t layer : layers) fields.push_back(field_of(layer));
    std::cout << nlohmann::ordered_json{{"rows", file.rows()},       {"hidden", writer.width()},
                                        {"fields", fields},          {"type", options.type},
                                        {"window", writer.window()}, {"bytes", bytes}}
                     .dump()
              << "\n";
    return;
  }
  std::cout << options.out << ": " << file.rows() << " rows of " << layers.size() << " x "
            << writer.width() << " values, " << bytes << " bytes\n";
}

}  // namespace

void add_features(CLI::App& app) {
  auto options = std::make_shared<Features>();
  CLI::App* command = app.add_subcommand(
      "features", "write the model's hidden states of texts, to train heads that draft");
  command->footer(
      "The file is one array of numpy: numpy.load(OUT, mmap_mode=\"r\") has the fields \"token\", "
      "\"position\" in the window (0 begins one), and \"layer_N\" or \"normed\" with the states.");
  add_model_options(*command, options->model, true);
  add_kv_option(*command, options->model);
  command->add_option("--text", options->texts, "UTF-8 files; each begins a window")->required();
  command->add_option("-o,--output", options->out, "the file to write, .npy")->required();
  CLI::Option* const layers =
      command
          ->add_option("--layers", options->layers,
                       "states before these layers, which are those after the layer before; 0: the "
                       "embedding, the number of layers: after the last")
          ->delimiter(',');
  CLI::Option* const normed = command->add_flag(
      "--normed", options->normed, "states after the final norm, from which logits are computed");
  command->add_option("--type", options->type, "of the states: f32 or f16")
      ->check(CLI::IsMember({"f32", "f16"}).description(""))
      ->capture_default_str();
  takes_count(command->add_option("--window", options->window,
                                  "tokens of a window, at most the context, which is the default"),
              2);
  command->add_flag("--special", options->model.special,
                    "special tokens in a text are such, not their characters");
  command->add_flag("--json", options->json, "print one JSON object about the file");
  command->callback([options, layers, normed] {
    if (layers->count() + normed->count() == 0) {
      throw Failure("which states? --layers N,... or --normed", 2);
    }
    features(*options);
  });
}

}  // namespace cli
