// SPDX-License-Identifier: Apache-2.0
// Loading a model, step by step. See loader.h.
#include "model/loader.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "model/adapter_targets.h"
#include "model/eagle_head.h"
#include "model/fingerprint.h"
#include "model/gguf/tensor_role.h"
#include "model/gguf/vocab.h"
#include "model/hparams.h"
#include "model/layer_split.h"
#include "model/plan_model.h"
#include "model/weights.h"
#include "chat/chat_form.h"

namespace gen::model {
namespace {

/// The share of progress for checking all tensors, if requested.
constexpr double kCheckShare = 0.5;

class Loader {
 public:
  Loader(std::shared_ptr<const gguf::GgufFile> file, const LoadOptions& options)
      : file_(std::move(file)), options_(options) {}

  Result<std::shared_ptr<const LoadedModel>> run() {
    GEN_TRY(check_options());
    GEN_TRY(check_kind());
    GEN_ASSIGN(const std::string name, file_->metadata().get_string("general.architecture"));
    GEN_ASSIGN(architecture_, arch::find_architecture(options_.architectures, name));
    GEN_ASSIGN(hparams_, read_hparams(file_->metadata(), [this](KeyReader& keys, HParams* hparams) {
                 return architecture_->read(architecture_->style, keys, hparams);
               }));
    auto loaded = std::make_shared<LoadedModel>();
    loaded->metadata = file_->shared_metadata();
    GEN_ASSIGN(loaded->tokenizer, load_tokenizer());
    GEN_TRY(find_vocab_size(loaded->tokenizer.get()));
    if (options_.check_tensors) GEN_TRY(check_tensors());
    GEN_ASSIGN(loaded->model, compile(loaded.get()));
    return std::shared_ptr<const LoadedModel>(std::move(loaded));
  }

 private:
  Status check_options() const {
    if (file_ == nullptr) return error(Code::kInvalidArgument, "no file to load");
    if (options_.engine == nullptr) return error(Code::kInvalidArgument, "no engine to load for");
    if (options_.max_seq_len < 0) {
      return error(Code::kInvalidArgument, "a context of %d", options_.max_seq_len);
    }
    if (options_.max_batch_rows < 1 || options_.max_batch_rows > kMaxBatchRows) {
      return error(Code::kInvalidArgument, "batches of %d rows, outside [1, %d]",
                   options_.max_batch_rows, kMaxBatchRows);
    }
    return {};
  }

  /// Files that stand beside models have an architecture, too.
  Status check_kind() const {
    struct Beside {
      std::string_view type;
      const char* what;
    };
    constexpr Beside kBeside[] = {
        {"adapter", "an adapter, which is given beside a model (gen_adapter_load, --lora)"},
        {"mmproj", "an encoder of pictures or sound beside a model"},
        {"imatrix", "an importance matrix, which is given when a model is quantised"},
    };
    GEN_ASSIGN(const std::string type, file_->metadata().get_string("general.type", ""));
    for (const Beside& row : kBeside) {
      if (type != row.type) continue;
      return error(Code::kUnsupported, "the file is no model but %s", row.what);
    }
    return {};
  }

  Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer() const {
    const gguf::Metadata& metadata = file_->metadata();
    GEN_ASSIGN(const std::string kind, metadata.get_string("tokenizer.ggml.model", "none"));
    if (gguf::names_no_tokenizer(kind)) {
      return std::shared_ptr<const tokenizer::Tokenizer>();
    }
    GEN_ASSIGN(tokenizer::VocabSpec spec, gguf::read_vocab(metadata, options_.pre_tokenizer));
    const bool has_template = !spec.chat_template.empty();
    GEN_ASSIGN(auto made, tokenizer::create_tokenizer(std::move(spec)));
    // A model with an unusable template can still generate text, so this is only a warning here.
    // Conversations fail later with the same message.
    if (has_template) {
      if (auto form = chat::ChatForm::of(*made); !form.ok()) {
        log(LogLevel::kWarning, "%s", form.status().message());
      }
    }
    return made;
  }

  Status find_vocab_size(const tokenizer::Tokenizer* tokenizer) {
    const gguf::TensorInfo* table = file_->find_tensor("token_embd.weight");
    if (table == nullptr) return error(Code::kFormat, "tensor token_embd.weight is missing");
    const int64_t rows = table->shape[1];
    if (rows < 1 || rows > std::numeric_limits<int32_t>::max()) {
      return error(Code::kFormat, "tensor token_embd.weight has %lld rows",
                   static_cast<long long>(rows));
    }
    if (tokenizer != nullptr && tokenizer->vocab_size() != rows) {
      return error(Code::kFormat, "tensor token_embd.weight has %lld rows for a vocabulary of %d",
                   static_cast<long long>(rows), tokenizer->vocab_size());
    }
    hparams_.vocab_size = static_cast<int32_t>(rows);
    return {};
  }

  bool report(double fraction) const { return !options_.progress || options_.progress(fraction); }
  [[nodiscard]] bool cancelled() const {
    return options_.cancel != nullptr && options_.cancel->raised();
  }

  Status check_tensors() {
    uint64_t total = 0;
    for (const gguf::TensorInfo& tensor : file_->tensors()) total += tensor.data.size();
    uint64_t done = 0;
    for (const gguf::TensorInfo& tensor : file_->tensors()) {
      if (cancelled()) return error(Code::kCancelled, "cancelled while loading");
      if (!gguf::is_media_tensor(tensor.name)) GEN_TRY(check_finite(tensor));
      done += tensor.data.size();
      const double share = static_cast<double>(done) / static_cast<double>(std::max(total, done));
      if (!report(kCheckShare * share)) return error(Code::kCancelled, "cancelled while loading");
    }
    return {};
  }

  Result<std::shared_ptr<const Model>> compile(LoadedModel* loaded) {
    Weights weights(*file_, options_.lasting);
    graph::GraphBuilder builder;
    architecture_->build(architecture_->style, hparams_, weights, builder);
    if (is_eagle(*file_, "")) weights.ignore_all("eagle.");
    GEN_TRY(
        weights.finish_model(hparams_.n_layers, std::max(hparams_.n_layers, hparams_.n_blocks)));
    loaded->unused = weights.unused();
    GEN_ASSIGN(graph::Graph graph, builder.finish());

    ModelTraits traits = make_traits();
    // A recurrent state includes all earlier tokens, so none can be dropped and no branch can
    // start.
    traits.can_shift = traits.can_branch = graph.states.empty();
    graph::CompileOptions compile_options;
    if (options_.engine->prompt_rows() > 0) {
      traits.max_batch_rows = std::max(traits.max_batch_rows, graph::kMaxStepRows);
    }
    compile_options.max_rows = traits.max_batch_rows;
    compile_options.max_seq_len = traits.max_seq_len;
    compile_options.cancel = options_.cancel;
    const double start = options_.check_tensors ? kCheckShare : 0.0;
    compile_options.progress = [&](double fraction) {
      return report(start + (1.0 - start) * fraction);
    };
    std::unordered_map<const std::byte*, const gguf::TensorInfo*> tensors;
    for (const gguf::TensorInfo& tensor : file_->tensors()) {
      tensors.emplace(tensor.data.data(), &tensor);
    }
    compile_options.release = [&](std::span<const std::byte> data) {
      const auto found = tensors.find(data.data());
      if (found != tensors.end()) file_->drop_pages(*found->second);
    };
    auto targets = std::make_shared<const AdapterTargets>(
        adapter_targets(graph, *file_, traits.architecture, traits.vocab_size));
    const LayerSplit split(graph, hparams_.n_layers, options_.engine, options_.host);
    GEN_ASSIGN(auto plan, split.compile(options_.on_device, compile_options, &loaded->on_device));
    if (plan->engines().size() == 1) traits.prompt_rows = plan->engine()->prompt_rows();

    std::shared_ptr<const void> source;
    if (plan->borrows_sources()) source = file_;
    const uint64_t used = file_->total_bytes() - weights.skipped_bytes();
    const size_t mapped = source != nullptr ? static_cast<size_t>(used) : 0;
    auto made = std::make_shared<PlanModel>(std::move(plan), traits, std::move(source), mapped,
                                            std::make_shared<const graph::Graph>(std::move(graph)),
                                            std::move(targets));
    if (hparams_.n_draft_layers > 0 || is_eagle(*file_, "")) GEN_TRY(add_head(*made));
    if (options_.lock) GEN_TRY(made->lock_weights());
    return std::shared_ptr<const Model>(std::move(made));
  }

  /// A head takes memory only while it is used, unless the file must be closed before.
  Status add_head(PlanModel& model) {
    const bool lasting = options_.lasting && file_->is_mapped();
    model.set_head([file = file_, lasting = options_.lasting](
                       const HeadTarget& target) -> Result<std::shared_ptr<const DraftHead>> {
      GEN_TRY(file->check_unchanged());
      return load_draft_head(file, target, true, lasting);
    });
    if (lasting) return {};
    const Status kept = model.keep_head();
    if (kept.ok() || kept.code() == Code::kOutOfMemory) return kept;
    // The model itself can be used.
    log(LogLevel::kWarning, "the head that drafts: %s", kept.message());
    model.set_head(nullptr);
    return {};
  }

  [[nodiscard]] ModelTraits make_traits() const {
    ModelTraits traits;
    traits.architecture = hparams_.architecture;
    traits.vocab_size = hparams_.vocab_size;
    traits.max_seq_len = hparams_.context_length;
    if (options_.max_seq_len > 0) {
      traits.max_seq_len = std::min(traits.max_seq_len, options_.max_seq_len);
    }
    traits.num_layers = hparams_.n_layers;
    for (const LayerParams& layer : hparams_.layers) {  // the maximum, if layers differ
      traits.num_heads = std::max(traits.num_heads, layer.attention.n_heads);
      traits.num_kv_heads = std::max(traits.num_kv_heads, layer.attention.n_kv_heads);
      traits.head_dim = std::max(traits.head_dim, layer.attention.k_dim);
      const engine::Routing& routing = layer.experts.routing;
      traits.num_experts = std::max(traits.num_experts, routing.n_experts);
      traits.num_experts_used = std::max(traits.num_experts_used, routing.n_used);
    }
    traits.hidden = hparams_.hidden;
    traits.max_batch_rows = options_.max_batch_rows;
    traits.fingerprint = fingerprint_of(*file_, hparams_.architecture);
    return traits;
  }

  static constexpr int32_t kMaxBatchRows = 65536;

  std::shared_ptr<const gguf::GgufFile> file_;
  const LoadOptions& options_;
  const arch::Architecture* architecture_ = nullptr;
  HParams hparams_;
};

}  // namespace

Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<const gguf::GgufFile> file,
                                                      const LoadOptions& options) {
  return Loader(std::move(file), options).run();
}

}  // namespace gen::model
