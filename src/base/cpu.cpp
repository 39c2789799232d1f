// SPDX-License-Identifier: Apache-2.0
// CPUID and XCR0 on x86; elsewhere the level is known when compiling. Instructions that the
// processor has but whose registers the operating system does not save must not be used, so both
// are asked. See cpu.h.
#include "base/cpu.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace gen {
namespace {

constexpr std::array<const char*, 6> kNames = {"scalar",      "avx2",        "avx512",
                                               "avx512_vnni", "avx512_bf16", "neon"};

#if defined(__x86_64__) || defined(__i386__)

constexpr bool has(uint32_t bits, uint32_t mask) noexcept { return (bits & mask) == mask; }

uint32_t read_xcr0() noexcept {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ __volatile__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

CpuLevel detect_x86() noexcept {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return CpuLevel::kScalar;
  if (!has(ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return CpuLevel::kScalar;
  const uint32_t saved = read_xcr0();
  constexpr uint32_t kVectorState = 0x06;  // XMM, upper halves of YMM
  constexpr uint32_t kWideState = 0xE0;    // mask registers, upper halves of ZMM, ZMM16 to 31
  if (!has(saved, kVectorState)) return CpuLevel::kScalar;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return CpuLevel::kScalar;
  if (!has(ebx, bit_AVX2 | bit_BMI | bit_BMI2)) return CpuLevel::kScalar;
  constexpr uint32_t kWide =
      bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
#if defined(GEN_WITHOUT_AVX512)
  return CpuLevel::kAvx2;  // nothing is compiled for more
#endif
  if (!has(ebx, kWide) || !has(saved, kWideState)) return CpuLevel::kAvx2;
  if (!has(ecx, bit_AVX512VNNI)) return CpuLevel::kAvx512;
  const uint32_t subleaves = eax;
  constexpr uint32_t kBf16 = 1U << 5;  // leaf 7, subleaf 1, EAX
  if (subleaves < 1 || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0 || !has(eax, kBf16)) {
    return CpuLevel::kAvx512Vnni;
  }
  return CpuLevel::kAvx512Bf16;
}

bool made_by_intel() noexcept {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == signature_INTEL_ebx &&
         ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
}

#else

bool made_by_intel() noexcept { return false; }

#endif

}  // namespace

CpuLevel detect_cpu_level() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return detect_x86();
#elif defined(__aarch64__)
  return CpuLevel::kNeon;  // part of the base architecture
#else
  return CpuLevel::kScalar;
#endif
}

bool cpu_level_runs(CpuLevel level, CpuLevel detected) noexcept {
  if (level == CpuLevel::kScalar || level == detected) return true;
  if (level == CpuLevel::kNeon || detected == CpuLevel::kNeon) return false;
  return level < detected;
}

CpuLevel default_cpu_level() noexcept {
  const CpuLevel detected = detect_cpu_level();
  return detected == CpuLevel::kAvx512Bf16 && made_by_intel() ? CpuLevel::kAvx512Vnni : detected;
}

Result<CpuLevel> chosen_cpu_level() {
  const CpuLevel detected = detect_cpu_level();
  const char* wanted = std::getenv("GEN_CPU");
  if (wanted == nullptr || *wanted == '\0') return default_cpu_level();
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (std::string_view(wanted) != kNames[i]) continue;
    const auto level = static_cast<CpuLevel>(i);
    if (cpu_level_runs(level, detected)) return level;
    return error(Code::kInvalidArgument, "GEN_CPU=%s is not offered by this machine, which has %s",
                 wanted, cpu_level_name(detected));
  }
  return error(Code::kInvalidArgument,
               "GEN_CPU=%.100s is not one of scalar, avx2, avx512, avx512_vnni, avx512_bf16, neon",
               wanted);
}

const char* cpu_level_name(CpuLevel level) noexcept {
  const auto index = static_cast<size_t>(level);
  return index < kNames.size() ? kNames[index] : "unknown";
}

uint64_t machine_memory() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
}

}  // namespace gen
