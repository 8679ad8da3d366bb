// The part of XLA's FFI that a handler needs, declared from its C ABI. No header of XLA's is used.
//
// Version 0.3 of the ABI: runtimes of that version or newer accept it, older ones do not. A handler
// that claims a version newer than the runtime's keeps the CPU backend from starting if it is
// registered first; `bind.py` starts the backend before it registers.
// Every struct begins with its size and a list of extensions; new versions only append fields.
#pragma once
#include <cstddef>
#include <cstdint>

namespace jaxspv::abi {

constexpr int32_t kMajor = 0, kMinor = 3;

enum Dtype : int32_t { kPred = 1, kS8 = 2, kS32 = 4, kS64 = 5, kF32 = 11, kF64 = 12 };
enum Code : int32_t { kInvalidArgument = 3, kResourceExhausted = 8, kInternal = 13 };
enum AttributeType : int32_t { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };
constexpr int32_t kMetadata = 1;  // type of the extension that asks for the version

struct Extension { size_t size; int32_t type; Extension* next; };
struct Version { size_t size; Extension* extension; int32_t major, minor; };
struct Error;    // owned by XLA
struct Context;  // of one execution
struct ErrorCreate { size_t size; Extension* extension; const char* message; int32_t code; };
struct ErrorDestroy { size_t size; Extension* extension; Error* error; };
struct Schedule { size_t size; Extension* extension; Context* context; void (*task)(void*); void* data; };
struct NumThreads { size_t size; Extension* extension; Context* context; int64_t* count; };

struct Api {
  size_t size;
  Extension* extension;
  Version version;
  const void* internal;
  Error* (*error_create)(ErrorCreate*);
  void* error_message;
  void (*error_destroy)(ErrorDestroy*);
  void* unused[8];  // registration, stream, types, state, device memory
  Error* (*schedule)(Schedule*);
  Error* (*num_threads)(NumThreads*);
};

struct Buffer { size_t size; Extension* extension; Dtype dtype; void* data; int64_t rank; int64_t* dims; };
struct Span { const char* begin; size_t size; };
struct Scalar { Dtype dtype; void* value; };
struct Buffers { size_t size; Extension* extension; int64_t count; int32_t* types; void** items; };
struct Attributes { size_t size; Extension* extension; int64_t count; int32_t* types; Span** names; void** items; };

struct Frame {
  size_t size;
  Extension* extension;
  const Api* api;
  Context* context;
  int32_t stage;
  Buffers operands, results;
  Attributes attributes;
  void* future;
};

struct Metadata { size_t size; Version version; uint32_t traits; int64_t state_type; };
struct MetadataExtension { Extension base; Metadata* metadata; };

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8, "64-bit platforms");
static_assert(sizeof(Extension) == 24 && sizeof(Version) == 24 && sizeof(Buffer) == 48);
static_assert(sizeof(Span) == 16 && sizeof(Scalar) == 16 && sizeof(Buffers) == 40 && sizeof(Attributes) == 48);
static_assert(offsetof(Api, error_create) == 48 && offsetof(Api, error_destroy) == 64);
static_assert(offsetof(Api, schedule) == 136 && offsetof(Api, num_threads) == 144 && sizeof(Api) == 152);
static_assert(offsetof(Frame, operands) == 40 && offsetof(Frame, results) == 80);
static_assert(offsetof(Frame, attributes) == 120 && offsetof(Frame, future) == 168);
static_assert(offsetof(Metadata, version) == 8 && offsetof(Metadata, traits) == 32);
static_assert(offsetof(MetadataExtension, metadata) == 24);

}  // namespace jaxspv::abi
