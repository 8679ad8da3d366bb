// Handlers of XLA's FFI: typed views of operands, results and attributes, errors, lanes of vmap.
//
// `JAXSPV_HANDLER(name) { ... }` has a `Call& call` inside (`handlers.h` writes them). What it throws becomes
// the error of the call: nothing leaves it.
#pragma once
#include <atomic>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "abi.h"
#include "checked.h"

namespace jaxspv {

using abi::Buffer;

template <class Given>
constexpr abi::Dtype dtype_of() {
  using T = std::remove_cv_t<Given>;
  if constexpr (std::is_same_v<T, float>) return abi::kF32;
  if constexpr (std::is_same_v<T, double>) return abi::kF64;
  if constexpr (std::is_same_v<T, int32_t>) return abi::kS32;
  if constexpr (std::is_same_v<T, int64_t>) return abi::kS64;
  if constexpr (std::is_same_v<T, int8_t>) return abi::kS8;
  return abi::kPred;  // uint8_t: truth values
}

// The most threads of a call; 0: as many as XLA's pool has.
inline std::atomic<int>& thread_limit() {
  static std::atomic<int> limit{0};
  return limit;
}

class Call {
 public:
  explicit Call(const abi::Frame* frame) : frame_(frame) {}

  const Buffer& operand(int i) const { return at(frame_->operands, i); }
  const Buffer& result(int i) const { return at(frame_->results, i); }

  void advise_results() const {
    for (int64_t i = 0; i < frame_->results.count; ++i) {
      const Buffer& b = result(int(i));
      size_t bytes = b.dtype == abi::kPred || b.dtype == abi::kS8 ? 1 : b.dtype == abi::kS32 || b.dtype == abi::kF32 ? 4 : 8;
      for (int64_t axis = 0; axis < b.rank; ++axis) bytes *= b.dims[axis];
      advise_large_pages(b.data, bytes);
    }
  }

  int64_t number(std::string_view name) const {
    const auto& a = frame_->attributes;
    for (int64_t i = 0; i < a.count; ++i) {
      if (a.types[i] != abi::kScalar || std::string_view(a.names[i]->begin, a.names[i]->size) != name) continue;
      const auto* scalar = static_cast<const abi::Scalar*>(a.items[i]);
      expect(scalar->dtype == abi::kS64, "attributes are int64");
      return *static_cast<const int64_t*>(scalar->value);
    }
    throw Invalid("no attribute " + std::string(name));
  }

  // XLA's pool as far as the setting allows.
  Pool pool() const {
    int64_t threads = 1;
    abi::NumThreads ask{sizeof ask, nullptr, frame_->context, &threads};
    if (abi::Error* error = frame_->api->num_threads(&ask)) {
      destroy(error);
      threads = 1;
    }
    const int limit = thread_limit().load();
    if (limit > 0) threads = std::min<int64_t>(threads, limit);
    return {const_cast<abi::Frame*>(frame_), &schedule, int(std::max<int64_t>(1, threads))};
  }

 private:
  static const Buffer& at(const abi::Buffers& buffers, int i) {
    expect(i < buffers.count, "too few operands or results");
    return *static_cast<const Buffer*>(buffers.items[i]);
  }
  void destroy(abi::Error* error) const {
    abi::ErrorDestroy args{sizeof args, nullptr, error};
    frame_->api->error_destroy(&args);
  }
  static bool schedule(void* context, void (*task)(void*), void* data) {
    const auto* frame = static_cast<const abi::Frame*>(context);
    abi::Schedule args{sizeof args, nullptr, frame->context, task, data};
    abi::Error* error = frame->api->schedule(&args);
    if (error) Call(frame).destroy(error);
    return !error;
  }

  const abi::Frame* frame_;
};

inline int64_t length(const Buffer& b) {  // of its last axis
  expect(b.rank > 0, "an array is expected, not a number");
  return b.dims[b.rank - 1];
}

// Lanes of `vmap(..., vmap_method="expand_dims")`: arrays have the same number of leading axes,
// each of the size of the lanes or 1.
class Lanes {
 public:
  // `core`: the axes of the result of one lane.
  Lanes(const Buffer& result, int core) {
    expect(result.rank >= core, "a result has too few axes");
    lead_.assign(result.dims, result.dims + (result.rank - core));
    for (int64_t n : lead_) count_ *= n;
  }
  int64_t count() const { return count_; }

  // Where a lane finds its part of an array whose own axes are the last `core`.
  template <class T>
  T* at(const Buffer& b, int core, int64_t lane) const {
    expect(b.dtype == dtype_of<T>(), "an array has another dtype than is expected");
    const int64_t lead = int64_t(lead_.size());
    expect(b.rank == lead + core, "an array has another number of axes than is expected");
    int64_t stride = 1, offset = 0;
    for (int64_t i = lead; i < b.rank; ++i) stride *= b.dims[i];
    for (int64_t i = lead - 1; i >= 0; --i) {
      expect(b.dims[i] == 1 || b.dims[i] == lead_[i], "axes of lanes do not match");
      if (b.dims[i] != 1) offset += lane % lead_[i] * stride;
      lane /= lead_[i];
      stride *= b.dims[i];
    }
    return static_cast<T*>(b.data) + offset;
  }

  // one(lane, team): a single lane is shared by the threads, several take a thread each.
  template <class F>
  void each(const Call& call, const F& one) const {
    Team team(call.pool()), alone;
    Team& inner = count_ == 1 ? team : alone;
    team.each(count_, [&](int64_t lane, int) { one(lane, inner); });
  }

 private:
  std::vector<int64_t> lead_;
  int64_t count_ = 1;
};

// The names of all handlers, a blank behind each; filled when the library is loaded.
inline std::string& handler_names() {
  static std::string names;
  return names;
}

inline abi::Error* fail(const abi::Frame* frame, const char* message, int32_t code) {
  abi::ErrorCreate args{sizeof args, nullptr, message, code};
  return frame->api->error_create(&args);
}

inline abi::Error* serve(abi::Frame* frame, void (*handler)(Call&)) noexcept {
  if (frame->extension && frame->extension->type == abi::kMetadata) {  // asked when registered
    auto* metadata = reinterpret_cast<abi::MetadataExtension*>(frame->extension)->metadata;
    metadata->version.major = abi::kMajor;
    metadata->version.minor = abi::kMinor;
    metadata->traits = 0;
    return nullptr;
  }
  try {
    Call call(frame);
    call.advise_results();
    handler(call);
    return nullptr;
  } catch (const Invalid& e) {
    return fail(frame, (std::string("jaxspv: ") + e.what() + ".").c_str(), abi::kInvalidArgument);
  } catch (const std::bad_alloc&) {
    return fail(frame, "jaxspv: out of memory.", abi::kResourceExhausted);
  } catch (const std::exception& e) {
    return fail(frame, e.what(), abi::kInternal);
  } catch (...) {
    return fail(frame, "jaxspv: unknown exception.", abi::kInternal);
  }
}

#if defined(_WIN32)
#define JAXSPV_EXPORT extern "C" __declspec(dllexport)
#else
#define JAXSPV_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#define JAXSPV_HANDLER(name)                                                               \
  static void name##_body(::jaxspv::Call& call);                                           \
  static const bool name##_listed = (::jaxspv::handler_names() += #name " ", true);        \
  JAXSPV_EXPORT ::jaxspv::abi::Error* jaxspv_##name(::jaxspv::abi::Frame* frame) {         \
    (void)name##_listed;                                                                   \
    return ::jaxspv::serve(frame, &name##_body);                                           \
  }                                                                                        \
  static void name##_body([[maybe_unused]] ::jaxspv::Call& call)

}  // namespace jaxspv
