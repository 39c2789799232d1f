// SPDX-License-Identifier: Apache-2.0
// CPUID and XCR0 on x86; elsewhere the level is known when compiling. Instructions that the
// processor has but whose registers the operating system does not save must not be used, so both
// are asked. See cpu.h.
#include "base/cpu.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace gen {
namespace {

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
  if (!has(saved, kVectorState)) return CpuLevel::kScalar;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return CpuLevel::kScalar;
  if (!has(ebx, bit_AVX2 | bit_BMI | bit_BMI2)) return CpuLevel::kScalar;
  uint32_t more = 0, other = 0;  // EAX of subleaf 1, and what is not read of it
  if (eax >= 1) __get_cpuid_count(7, 1, &more, &other, &other, &other);
  uint32_t found = kCpuAvx2;
#if !defined(GEN_WITHOUT_AVX512)         // else nothing is compiled for more
  constexpr uint32_t kWideState = 0xE0;  // mask registers, upper halves of ZMM, ZMM16 to 31
  constexpr uint32_t kWide =
      bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  constexpr uint32_t kBf16 = 1U << 5;
  if (has(saved, kWideState) && has(ebx, kWide)) {
    found |= kCpuAvx512;
    if (has(ecx, bit_AVX512VNNI)) found |= kCpuVnni;
    if (has(more, kBf16)) found |= kCpuBf16;
  }
#endif
  return {found};
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

CpuLevel default_cpu_level() noexcept {
  CpuLevel level = detect_cpu_level();
  if (made_by_intel()) level.features &= ~kCpuBf16;
  return level;
}

Result<CpuLevel> chosen_cpu_level() {
  const char* wanted = std::getenv("GEN_CPU");
  if (wanted == nullptr || *wanted == '\0') return default_cpu_level();
  const CpuLevel detected = detect_cpu_level();
  for (const NamedCpuLevel& row : kCpuLevels) {
    if (std::string_view(wanted) != row.name) continue;
    if (cpu_level_runs(row.level, detected)) return row.level;
    return error(Code::kInvalidArgument, "GEN_CPU=%s is not offered by this machine, which has %s",
                 wanted, cpu_level_name(detected));
  }
  std::string names;
  for (const NamedCpuLevel& row : kCpuLevels) {
    names += std::string(names.empty() ? "" : ", ") + row.name;
  }
  return error(Code::kInvalidArgument, "GEN_CPU=%.100s is not one of %s", wanted, names.c_str());
}

const char* cpu_level_name(CpuLevel level) noexcept {
  const char* name = "";
  for (const NamedCpuLevel& row : kCpuLevels) {
    if (cpu_level_runs(row.level, level)) name = row.name;
  }
  return name;
}

uint64_t machine_memory() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
}

}  // namespace gen
