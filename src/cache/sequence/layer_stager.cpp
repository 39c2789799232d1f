// SPDX-License-Identifier: Apache-2.0
// See layer_stager.h. Threads claim blocks under the mutex and read them without it, so the caller,
// who would only wait, shares the work with the stager's thread.
#include "cache/sequence/layer_stager.h"

#include <algorithm>
#include <new>
#include <utility>

namespace gen::cache {

LayerStager::~LayerStager() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  thread_.join();
}

Status LayerStager::grow(Room& room, size_t buffers) {
  room.buffers.reserve(buffers);
  while (room.buffers.size() < buffers) {
    GEN_ASSIGN(engine::EngineBuffer buffer, memory_.allocate(block_bytes_));
    room.buffers.push_back(std::move(buffer));
  }
  return {};
}

Status LayerStager::places(int32_t layer, std::span<engine::EnginePtr<std::byte>> out) {
  const std::lock_guard lock(mutex_);
  Room& room = room_of(layer);
  GEN_TRY(grow(room, out.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = room.buffers[i].data();
  return {};
}

bool LayerStager::holds(const Room& room, Blocks blocks) noexcept {
  return room.failure.ok() && room.blocks.size() == blocks.size() &&
         std::equal(blocks.begin(), blocks.end(), room.blocks.begin());
}

Status LayerStager::prepare(Room& room, int32_t layer, Blocks blocks) {
  const auto same =
      std::mismatch(blocks.begin(), blocks.end(), room.blocks.begin(), room.blocks.end());
  const auto kept = static_cast<size_t>(same.first - blocks.begin());
  const size_t next = room.failure.ok() && room.layer == layer ? std::min(kept, room.next) : 0;
  room.layer = -1;  // invalid until all blocks are read
  room.next = 0;
  room.failure = {};
  room.blocks.clear();
  room.blocks.reserve(blocks.size());
  GEN_TRY(grow(room, blocks.size()));
  room.blocks.assign(blocks.begin(), blocks.end());
  room.next = next;
  room.layer = layer;
  return {};
}

void LayerStager::settle(Room& room, std::unique_lock<std::mutex>& lock) {
  if (room.reading == 0) return;
  const size_t begun = room.next;
  room.next = room.blocks.size();
  done_.wait(lock, [&room] { return room.reading == 0; });
  room.next = begun;
}

Status LayerStager::read_block(const SpilledBlock& block,
                               engine::EnginePtr<std::byte> to) const noexcept {
  try {
    return block.read(memory_, to);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory to read a block of %zu bytes", block.bytes());
  }
}

void LayerStager::read_next(Room& room, std::unique_lock<std::mutex>& lock) {
  const size_t index = room.next++;
  ++room.reading;
  // `reading` keeps both alive.
  const SpilledBlock& block = *room.blocks[index];
  const engine::EnginePtr<std::byte> to = room.buffers[index].data();
  lock.unlock();
  Status status = read_block(block, to);
  if (status.ok()) bytes_read_ += block.bytes();
  lock.lock();
  --room.reading;
  if (!status.ok() && room.failure.ok()) room.failure = std::move(status);
  if (room.reading == 0) done_.notify_all();
}

void LayerStager::begin_thread() {
  if (thread_.running() || no_thread_) return;
  auto started = Thread::start(
      [](void* self) -> void* {
        static_cast<LayerStager*>(self)->serve();
        return nullptr;
      },
      this);
  no_thread_ = !started.ok();
  if (started.ok()) thread_ = std::move(started).value();
}

Status LayerStager::need(int32_t layer, Blocks blocks, size_t* begun) {
  std::unique_lock lock(mutex_);
  Room& room = room_of(layer);
  if (!holds(room, blocks) || room.layer != layer) {
    settle(room, lock);
    GEN_TRY(prepare(room, layer, blocks));
  }
  room.used = ++uses_;
  current_ = &room;
  *begun = room.blocks.size() - room.next;
  if (room.blocks.size() > room.next + 1) {
    begin_thread();
    work_.notify_one();
  }
  while (pending(room)) read_next(room, lock);
  done_.wait(lock, [&room] { return room.reading == 0; });
  return room.failure;
}

void LayerStager::start(int32_t layer, Blocks blocks) {
  if (blocks.empty() || rooms_.size() < 2) return;
  std::unique_lock lock(mutex_);
  Room& room = room_of(layer);
  if (&room == current_) return;
  if (!holds(room, blocks) || room.layer != layer) {
    if (room.reading > 0) return;
    if (!prepare(room, layer, blocks).ok()) return;
  }
  room.used = ++uses_;
  if (!pending(room)) return;
  begin_thread();
  lock.unlock();
  work_.notify_one();
}

void LayerStager::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    Room* first = nullptr;
    for (Room& room : rooms_) {
      if (pending(room) && (first == nullptr || room.used < first->used)) first = &room;
    }
    if (stop_) return;
    if (first != nullptr) {
      read_next(*first, lock);
    } else {
      work_.wait(lock);
    }
  }
}

void LayerStager::forget() noexcept {
  std::unique_lock lock(mutex_);
  for (Room& room : rooms_) {
    settle(room, lock);
    room.layer = -1;
    room.next = 0;
    room.failure = {};
    room.blocks.clear();
    room.buffers.clear();
  }
  current_ = nullptr;
}

size_t LayerStager::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  size_t buffers = 0;
  for (const Room& room : rooms_) buffers += room.buffers.size();
  return buffers * block_bytes_;
}

}  // namespace gen::cache
