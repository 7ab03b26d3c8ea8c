#include "kernels/cpu/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "kernels/cpu/isa_tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace paceline {
namespace {

constexpr std::array kAllIsas = {Isa::baseline,   Isa::avx2,       Isa::avxvnni, Isa::avx512,
                                 Isa::avx512vnni, Isa::avx512bf16, Isa::amx};

struct CompiledIsa {
  Isa isa;
  KernelTable (*make_table)();
};
#define PACELINE_COMPILED_ISA(isa) CompiledIsa{Isa::isa, &isa::make_kernel_table},
constexpr std::array kCompiledIsas = {PACELINE_COMPILED_ISAS(PACELINE_COMPILED_ISA)};
#undef PACELINE_COMPILED_ISA

#if defined(__x86_64__)

constexpr uint32_t bit(int index) { return uint32_t{1} << index; }

// The registers that the operating system saves: XMM and YMM, then the opmasks and ZMM too, and
// those of tiles.
constexpr uint64_t kYmmState = 0x06, kZmmState = 0xE6, kTileState = 0x60000;

uint64_t saved_states() {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// The feature registers of CPUID (Intel SDM, volume 2A, CPUID).
struct Features {
  uint32_t leaf1_c = 0, leaf7_b = 0, leaf7_c = 0, leaf7_d = 0, leaf7_1_a = 0;
  uint64_t states = 0;

  bool have_avx2() const {
    constexpr uint32_t kLeaf1 = bit(12) | bit(29);         // FMA, F16C
    constexpr uint32_t kLeaf7 = bit(3) | bit(5) | bit(8);  // BMI1, AVX2, BMI2
    return (leaf1_c & kLeaf1) == kLeaf1 && (leaf7_b & kLeaf7) == kLeaf7 &&
           (states & kYmmState) == kYmmState;
  }
  bool have_avx512() const {
    constexpr uint32_t kLeaf7 = bit(16) | bit(17) | bit(30) | bit(31);  // F, DQ, BW, VL
    return have_avx2() && (leaf7_b & kLeaf7) == kLeaf7 && (states & kZmmState) == kZmmState;
  }
  bool have_avxvnni() const { return have_avx2() && (leaf7_1_a & bit(4)) != 0; }
  bool have_avx512vnni() const { return have_avx512() && (leaf7_c & bit(11)) != 0; }
  bool have_avx512bf16() const { return have_avx512vnni() && (leaf7_1_a & bit(5)) != 0; }
  bool have_amx() const {
    constexpr uint32_t kLeaf7 = bit(22) | bit(24) | bit(25);  // AMX-BF16, -TILE and -INT8
    return have_avx512bf16() && (leaf7_d & kLeaf7) == kLeaf7 && (states & kTileState) == kTileState;
  }
};

// `vendor`: the first four letters of its name.
bool is_made_by(uint32_t vendor) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == vendor;
}

// Intel's vdpbf16ps starts every other cycle, a quarter as often as its float32 multiply-adds, so
// that two of those per pair are twice as fast (measured on Sapphire Rapids). AMD's runs at their
// rate.
bool has_slow_bf16_products() { return is_made_by(signature_INTEL_ebx); }

// Linux grants tile registers on request (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool machine_runs(Isa isa) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  Features features;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) features.leaf1_c = c;
  if ((features.leaf1_c & bit(27)) != 0) features.states = saved_states();  // OSXSAVE
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    features.leaf7_b = b;
    features.leaf7_c = c;
    features.leaf7_d = d;
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) features.leaf7_1_a = a;
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return features.have_avx2();
    case Isa::avxvnni:
      return features.have_avxvnni();
    case Isa::avx512:
      return features.have_avx512();
    case Isa::avx512vnni:
      return features.have_avx512vnni();
    case Isa::avx512bf16:
      return features.have_avx512bf16();
    case Isa::amx:
      return features.have_amx() && may_use_tiles();
  }
  return false;
}

#else

constexpr uint32_t signature_AMD_ebx = 0;
bool is_made_by(uint32_t) { return false; }
bool has_slow_bf16_products() { return false; }
bool machine_runs(Isa isa) { return isa == Isa::baseline; }

#endif

std::span<const Isa> find_isas() {
  static std::array<Isa, kAllIsas.size()> isas{};
  size_t count = 0;
  for (const CompiledIsa& compiled : kCompiledIsas) {
    if (machine_runs(compiled.isa)) isas[count++] = compiled.isa;
  }
  return {isas.data(), count};
}

bool is_available(Isa isa) {
  const auto isas = available_isas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

Isa fastest_isa() {
  const Isa newest = available_isas().back();
  const bool is_slow = newest == Isa::avx512bf16 && has_slow_bf16_products();
  return is_slow && is_available(Isa::avx512vnni) ? Isa::avx512vnni : newest;
}

std::string names_of(std::span<const Isa> isas) {
  std::string names;
  for (const Isa isa : isas) {
    if (!names.empty()) names += ", ";
    names += isa_name(isa);
  }
  return names;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avxvnni:
      return "avxvnni";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512vnni:
      return "avx512vnni";
    case Isa::avx512bf16:
      return "avx512bf16";
    case Isa::amx:
      return "amx";
  }
  return "";
}

std::span<const Isa> available_isas() {
  static const std::span<const Isa> isas = find_isas();
  return isas;
}

Isa choose_isa() {
  const char* const wanted = std::getenv("PACELINE_ISA");
  if (wanted == nullptr || *wanted == '\0') return fastest_isa();
  for (const Isa isa : kAllIsas) {
    if (isa_name(isa) != wanted) continue;
    if (is_available(isa)) return isa;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("PACELINE_ISA is {}, which this machine or this build lacks; it runs {}",
                    wanted, names_of(available_isas())));
  }
  throw Error(ErrorCode::invalid, fmt::format("PACELINE_ISA is \"{}\", expected one of {}", wanted,
                                              names_of(kAllIsas)));
}

bool unpacks_freely() {
  static const bool is_free = is_made_by(signature_AMD_ebx);
  return is_free;
}

const KernelTable& kernel_table(Isa isa) {
  PL_CHECK(is_available(isa), fmt::format("this machine or this build lacks {}", isa_name(isa)));
  static std::array<KernelTable, kAllIsas.size()> tables = [] {
    std::array<KernelTable, kAllIsas.size()> made{};
    for (const CompiledIsa& compiled : kCompiledIsas) {
      if (is_available(compiled.isa))
        made[static_cast<size_t>(compiled.isa)] = compiled.make_table();
    }
    return made;
  }();
  return tables[static_cast<size_t>(isa)];
}

}  // namespace paceline
