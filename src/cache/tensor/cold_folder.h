// SPDX-License-Identifier: Apache-2.0
// The folder of one tiered store: a file for each cold layer, layer_<n>.bin, and a manifest that
// tells which of them count. A file is written under another name, synced and renamed, and the
// folder synced, before the manifest names it; what is read back is checked against both, so that a
// torn, foreign, changed, old or missing file is an error that names the file, and never data.
//
// All numbers are little-endian. A layer's file is a header of 96 bytes, then the bytes that
// warm_form.h describes:
//    0  "GENKVLAY"     8  u32 version       12  u32 layer
//   16  owner: the store's 16 random bytes
//   32  u32 form       36  u32 chunk        40  u32 batch      44  u32 positions
//   48  u32 dim        52  u32 element type 56  u64 bytes after the header
//   64  u64 checksum of them                72  u64 generation, counted up with each file
//   80  u64 0          88  u64 checksum of the 88 bytes before
// The manifest: "GENKVMAN", u32 version, u32 layers, owner, u64 generation; for each layer 48
// bytes: u32 form (2^32 - 1 where there is no file), u32 chunk, u32 batch, u32 positions, u32 dim,
// u32 positions still held, u64 bytes, u64 checksum, u64 generation; at last a u64 checksum of all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/status.h"
#include "cache/tensor/tensor_provider.h"
#include "cache/tensor/warm_form.h"

namespace gen::cache {

/// What a layer's file holds.
struct ColdLayer {
  const WarmForm* form = nullptr;  // null: there is no file
  int32_t chunk = 0;
  TensorShape shape;  // as encoded
  int32_t kept = 0;   // positions still held, at most shape.seq
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint64_t generation = 0;
};

/// Threads: any; calls about one layer come one at a time. A failing call leaves everything as it
/// was, but perhaps for a file that the next close() removes.
class ColdFolder {
 public:
  struct Options {
    FileOps* files = nullptr;
    std::string folder;  // empty: a temporary folder, removed by close()
    std::string id;      // of the store among those in `folder`; empty: a random one
  };

  /// Makes folder/kv-<id>, or a temporary folder. kIo; kInvalidArgument for an id with other signs
  /// than letters, digits, '-' and '_'.
  static Result<std::unique_ptr<ColdFolder>> create(const Options& options, int32_t num_layers);
  /// Takes over a folder that close() has left, and holds it alone: kBusy while another does. With
  /// an empty id, the only one in `folder`. kIo if there is none; kFormat for a manifest that is
  /// damaged or of another number of layers.
  static Result<std::unique_ptr<ColdFolder>> open(const Options& options, int32_t num_layers);
  ~ColdFolder();
  ColdFolder(const ColdFolder&) = delete;
  ColdFolder& operator=(const ColdFolder&) = delete;

  [[nodiscard]] ColdLayer layer(int32_t layer) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Keeps a layer that has no file: form, chunk, shape and kept of `what`.
  Status put(int32_t layer, const ColdLayer& what, std::span<const std::byte> payload);
  /// Reads the file of a layer, layer(n).bytes of them.
  Status read(int32_t layer, std::span<std::byte> payload) const;
  /// Forgets a layer's file.
  Status drop(int32_t layer);
  /// The first kept[n] positions of each layer count; a file is forgotten where that is 0.
  Status keep(std::span<const int32_t> kept);
  /// Forgets the folder: removes it with what was made in it if it is temporary or no layer is
  /// cold, else leaves it for open(). After a failure it may be called again. Takes memory only
  /// where a manifest could not be written before.
  Status close();

  [[nodiscard]] size_t metadata_bytes() const noexcept;

 private:
  using Owner = std::array<std::byte, 16>;

  ColdFolder(const Options& options, int32_t num_layers)
      : files_(*options.files),
        temporary_(options.folder.empty()),
        layers_(static_cast<size_t>(num_layers)) {}

  /// Makes room for the names in it, so that what was made can be removed without memory.
  void set_path(std::string path);
  [[nodiscard]] std::string file_of(int32_t layer) const;
  [[nodiscard]] std::string manifest_path() const { return path_ + "/manifest.bin"; }
  /// The same, valid until the next; mutex_ held. Take no memory.
  const std::string& name_of_layer(int32_t layer);
  const std::string& name_of_manifest();
  Status write_file(const std::string& path, std::span<const std::byte> header,
                    std::span<const std::byte> payload);
  /// Makes `layers` what the manifest says, then layers_. mutex_ held.
  Status replace(std::vector<ColdLayer> layers);
  Status read_manifest();
  /// Removes the file of a layer that no manifest names, now or in close(). mutex_ held.
  void forget(int32_t layer);

  FileOps& files_;
  bool temporary_;
  std::string path_;
  std::string name_;  // of a file in it
  OpenFile lock_;
  Owner owner_{};
  mutable std::mutex mutex_;
  std::vector<ColdLayer> layers_;
  uint64_t generation_ = 0;
  bool manifest_old_ = false;    // the file may say other than layers_
  bool manifest_there_ = false;  // a file of that name may be there
  std::vector<int32_t> litter_;  // layers whose file may be there without being named
  bool closed_ = false;
};

}  // namespace gen::cache
