// SPDX-License-Identifier: Apache-2.0
// See matrix_library.h.
#include "cuda/engine/matrix_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "cuda/engine/cublaslt_numbers.h"

namespace gen::cuda {
namespace {

using namespace cublaslt;  // NOLINT(google-build-using-namespace)

constexpr size_t kMaxPlans = 256;
/// The same for products with own_bits. They are kept, since trials take time. Rows are padded, so
/// a model has some hundred. One more is for our own kernel.
constexpr size_t kMaxTried = 512;
/// The number of algorithms requested, and of undecided trials after which trials end.
constexpr int kMaxWays = 8;
constexpr int kMaxUndecided = 64;

#ifdef GEN_CUDA_EMULATED
constexpr const char* kNames[] = {nullptr};
#else
constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", nullptr};
#endif

}  // namespace

struct MatrixLibrary::Functions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*desc_create)(void** desc, int compute, int scale_type);
  int (*desc_set)(void* desc, int attribute, const void* from, size_t bytes);
  int (*desc_destroy)(void* desc);
  int (*layout_create)(void** layout, int type, uint64_t rows, uint64_t cols, int64_t stride);
  int (*layout_destroy)(void* layout);
  int (*preference_create)(void** preference);
  int (*preference_set)(void* preference, int attribute, const void* from, size_t bytes);
  int (*preference_destroy)(void* preference);
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                   int wanted, HeuristicResult* results, int* found);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout,
                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                void* d, void* d_layout, const Algorithm* algorithm, void* workspace,
                size_t workspace_bytes, device::Stream stream);
};

/// A shape with the library's objects for it. In the library's column-major order w is a matrix of
/// cols x outputs, to be transposed, x is cols x rows, and y is outputs x rows.
struct MatrixLibrary::Plan {
  explicit Plan(const Functions& functions) : of(functions) {}
  ~Plan() {
    if (desc != nullptr) of.desc_destroy(desc);
    for (void* layout : {w, x, y}) {
      if (layout != nullptr) of.layout_destroy(layout);
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  [[nodiscard]] bool is_of(const MatrixProduct& other) const noexcept {
    return shape.type == other.type && shape.rows == other.rows && shape.outputs == other.outputs &&
           shape.cols == other.cols && shape.w_stride == other.w_stride &&
           shape.x_stride == other.x_stride && shape.y_stride == other.y_stride &&
           shape.workspace_bytes == other.workspace_bytes &&
           (!shape.own_bits || (shape.residual != nullptr) == (other.residual != nullptr));
  }
  [[nodiscard]] const HeuristicResult& way() const noexcept { return all[at]; }

  const Functions& of;
  MatrixProduct shape;
  void* desc = nullptr;
  void* w = nullptr;
  void* x = nullptr;
  void* y = nullptr;
  HeuristicResult all[kMaxWays] = {};
  size_t ways = 0;
  size_t at = 0;  // index of the current way
  bool usable = false;
  bool found = false;  // it has our own kernel's bits
  int undecided = 0;
  // For ways that have passed their trial.
  size_t passed = 0;
  size_t first = 0;
  size_t fastest = 0;
  float ms = 0.0F;    // time of the fastest one
  bool timed = true;  // whether all have been timed
};

MatrixLibrary::MatrixLibrary(std::string path) : path_(std::move(path)) {}

MatrixLibrary::~MatrixLibrary() {
  plans_.clear();
  tried_plans_.clear();
  if (handle_ != nullptr) functions_->destroy(handle_);
  if (library_ != nullptr) dlclose(library_);
}

std::string MatrixLibrary::chosen_path() {
  const char* const chosen = std::getenv("GEN_CUBLASLT");
  return chosen != nullptr ? chosen : "";
}

bool MatrixLibrary::open() {
  if (tried_) return handle_ != nullptr;
  tried_ = true;
  if (find()) return true;
  if (path_.empty() || path_ == "off") {
    log(LogLevel::kDebug, "products without cuBLASLt: %s", why_not_.c_str());
  } else {
    log(LogLevel::kWarning, "products without cuBLASLt, GEN_CUBLASLT is \"%.500s\": %s",
        path_.c_str(), why_not_.c_str());
  }
  return false;
}

bool MatrixLibrary::find() {
  if (path_ == "off") {
    why_not_ = "GEN_CUBLASLT is off";
    return false;
  }
  if (!path_.empty()) {
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  } else {
    for (const char* const* name = kNames; *name != nullptr && library_ == nullptr; ++name) {
      library_ = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (library_ == nullptr) {
    const char* const said = dlerror();
    why_not_ = said != nullptr ? said : "there is no libcublasLt";
    return false;
  }
  functions_ = std::make_unique<Functions>();
  Functions& of = *functions_;
  const auto find = [&](auto* function, const char* name) {
    void* const at = dlsym(library_, name);
    if (at == nullptr && why_not_.empty()) why_not_ = std::string("it lacks ") + name;
    std::memcpy(function, &at, sizeof(at));
  };
  find(&of.create, "cublasLtCreate");
  find(&of.destroy, "cublasLtDestroy");
  find(&of.desc_create, "cublasLtMatmulDescCreate");
  find(&of.desc_set, "cublasLtMatmulDescSetAttribute");
  find(&of.desc_destroy, "cublasLtMatmulDescDestroy");
  find(&of.layout_create, "cublasLtMatrixLayoutCreate");
  find(&of.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(&of.preference_create, "cublasLtMatmulPreferenceCreate");
  find(&of.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(&of.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(&of.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(&of.matmul, "cublasLtMatmul");
  if (!why_not_.empty()) return false;
  if (const int status = of.create(&handle_); status != 0) {
    handle_ = nullptr;
    why_not_ = "cublasLtCreate failed with " + std::to_string(status);
    return false;
  }
  return true;
}

size_t MatrixLibrary::workspace_bytes(int32_t compute) {
  if (!open()) return 0;
  return size_t{compute >= 90 ? 32U : 4U} << 20;
}

MatrixLibrary::Plan* MatrixLibrary::plan_of(const MatrixProduct& product) {
  auto& plans = product.own_bits ? tried_plans_ : plans_;
  const auto known = std::find_if(plans.begin(), plans.end(),
                                  [&](const auto& plan) { return plan->is_of(product); });
  if (known != plans.end()) {
    // Shapes of the current model come first.
    std::rotate(plans.begin(), known, known + 1);
    return plans.front()->usable ? plans.front().get() : nullptr;
  }
  if (product.own_bits && plans.size() >= kMaxTried) return nullptr;
  // Shapes come and go with the number of rows of a step.
  if (!product.own_bits && plans.size() >= kMaxPlans) plans.clear();
  auto plan = std::make_unique<Plan>(*functions_);
  plan->shape = product;
  plan_ways(*plan, product.own_bits ? kMaxWays : 1);
  plan->usable = plan->ways > 0;
  plans.push_back(std::move(plan));
  return plans.back()->usable ? plans.back().get() : nullptr;
}

void MatrixLibrary::plan_ways(Plan& plan, int wanted) {
  const Functions& of = *functions_;
  const MatrixProduct& product = plan.shape;
  const int type = product.type == DType::kF16 ? kTypeF16 : kTypeBF16;
  const auto rows = static_cast<uint64_t>(product.rows);
  const auto outputs = static_cast<uint64_t>(product.outputs);
  const auto cols = static_cast<uint64_t>(product.cols);
  void* preference = nullptr;
  int found = 0;
  const bool made =
      of.desc_create(&plan.desc, kComputeF32, kTypeF32) == 0 &&
      of.desc_set(plan.desc, kDescTransposeA, &kTranspose, sizeof(int)) == 0 &&
      of.desc_set(plan.desc, kDescTransposeB, &kNoTranspose, sizeof(int)) == 0 &&
      of.layout_create(&plan.w, type, cols, outputs, product.w_stride) == 0 &&
      of.layout_create(&plan.x, type, cols, rows, product.x_stride) == 0 &&
      of.layout_create(&plan.y, kTypeF32, outputs, rows, product.y_stride) == 0 &&
      of.preference_create(&preference) == 0 &&
      of.preference_set(preference, kPreferenceWorkspace, &product.workspace_bytes,
                        sizeof(size_t)) == 0 &&
      (!product.own_bits || of.preference_set(preference, kPreferenceReductions, &kNoReduction,
                                              sizeof(kNoReduction)) == 0) &&
      of.heuristic(handle_, plan.desc, plan.w, plan.x, plan.y, plan.y, preference, wanted, plan.all,
                   &found) == 0;
  if (preference != nullptr) of.preference_destroy(preference);
  for (int i = 0; made && i < found && i < wanted; ++i) {
    const HeuristicResult way = plan.all[i];
    if (way.state != 0 || way.workspace_bytes > product.workspace_bytes) continue;
    plan.all[plan.ways++] = way;
  }
}

bool MatrixLibrary::multiply(const MatrixProduct& product, device::Stream stream) {
  if (!open()) return false;
  Plan* const plan = plan_of(product);
  if (plan == nullptr) return false;
  const float one = 1.0F;
  const float beta = product.residual != nullptr ? 1.0F : 0.0F;
  const float* const residual = product.residual != nullptr ? product.residual : product.y;
  const int status =
      functions_->matmul(handle_, plan->desc, &one, product.w, plan->w, product.x, plan->x, &beta,
                         residual, plan->y, product.y, plan->y, &plan->way().algorithm,
                         product.workspace, product.workspace_bytes, stream);
  if (status == 0) return true;
  if (product.own_bits && !plan->found) {
    next_way(*plan);
  } else {
    plan->usable = false;
  }
  return false;
}

MatrixProducts::Ways MatrixLibrary::ways(const MatrixProduct& product) {
  if (!open()) return Ways::kNone;
  const Plan* const plan = plan_of(product);
  if (plan == nullptr) return Ways::kNone;
  return plan->found ? Ways::kFound : Ways::kToTry;
}

void MatrixLibrary::judge(const MatrixProduct& product, Verdict verdict, float ms) {
  Plan* const plan = open() ? plan_of(product) : nullptr;
  if (plan == nullptr || plan->found) return;
  if (verdict == Verdict::kUndecided) {
    plan->usable = ++plan->undecided < kMaxUndecided;
    return;
  }
  if (verdict == Verdict::kSame) {
    if (plan->passed == 0) plan->first = plan->at;
    if (plan->passed == 0 || ms < plan->ms) {
      plan->fastest = plan->at;
      plan->ms = ms;
    }
    ++plan->passed;
    plan->timed = plan->timed && ms != kUntimed;
    if (!plan->timed) return take_passed(*plan);
  }
  next_way(*plan);
}

void MatrixLibrary::settle(const MatrixProduct& product, float own_ms) {
  Plan* const plan = open() ? plan_of(product) : nullptr;
  if (plan == nullptr || plan->passed == 0) return;
  plan->timed = plan->timed && own_ms != kUntimed;
  take_passed(*plan);
  plan->usable = !plan->timed || plan->ms < own_ms;
  char times[96] = "not timed";
  if (plan->timed) {
    std::snprintf(times, sizeof times, "%.1f us, our kernel %.1f%s",
                  static_cast<double>(plan->ms) * 1e3, static_cast<double>(own_ms) * 1e3,
                  plan->usable ? "" : ", which is kept");
  }
  log(LogLevel::kDebug,
      "cuBLASLt: %zu of %zu algorithms passed their trial for %lld rows of %s weights, "
      "%lld x %lld: algorithm %zu, %s",
      plan->passed, plan->ways, static_cast<long long>(product.rows), dtype_name(product.type),
      static_cast<long long>(product.outputs), static_cast<long long>(product.cols), plan->at + 1,
      times);
}

void MatrixLibrary::take_passed(Plan& plan) noexcept {
  plan.found = true;
  plan.at = plan.timed ? plan.fastest : plan.first;
}

void MatrixLibrary::next_way(Plan& plan) {
  if (++plan.at < plan.ways) return;
  if (plan.passed > 0) return take_passed(plan);
  plan.usable = false;
  log(LogLevel::kDebug,
      "cuBLASLt: none of %zu algorithms passed its trial for %lld rows of %s weights, %lld x %lld",
      plan.ways, static_cast<long long>(plan.shape.rows), dtype_name(plan.shape.type),
      static_cast<long long>(plan.shape.outputs), static_cast<long long>(plan.shape.cols));
}

}  // namespace gen::cuda
