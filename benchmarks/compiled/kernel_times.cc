// The kernels of any CUDA program, for benchmarks/compiled/gpu_programs.py:
//   g++ -O2 -shared -fPIC -I$CUDA/include kernel_times.cc -L$CUDA/lib64 -l:libcupti.so.13 \
//       -o libinject.so
//   CUDA_INJECTION64_PATH=libinject.so KERNEL_TIMES=FILE PROGRAM
// writes a line "start duration name" for each kernel and memset, in ns of CLOCK_REALTIME, when the
// program ends. A program says which of them are one computation by lines "start end label" of the
// same clock in the file that KERNEL_MARKS names.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static FILE* out;

static void CUPTIAPI give(uint8_t** buffer, size_t* size, size_t* most) {
  *size = 8 << 20;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
  *most = 0;
}

template <class Activity>
static void put(const CUpti_Activity* record, const char* name) {
  auto* a = reinterpret_cast<const Activity*>(record);
  auto start = static_cast<unsigned long long>(a->start);
  fprintf(out, "%llu %llu %s\n", start, static_cast<unsigned long long>(a->end) - start, name);
}

static void CUPTIAPI take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      auto* kernel = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      put<CUpti_ActivityKernel10>(record, kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      put<CUpti_ActivityMemset4>(record, "memset");
    }
  }
  free(buffer);
  fflush(out);  // a program that is ended leaves what was written until then
}

static void end() {
  cuptiActivityFlushAll(1);
  fclose(out);
}

extern "C" int InitializeInjection() {
  const char* path = getenv("KERNEL_TIMES");
  if (!path || !(out = fopen(path, "w"))) return 0;
  cuptiActivityRegisterCallbacks(give, take);
  cuptiActivityFlushPeriod(100);  // ms
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
  atexit(end);
  return 1;
}
