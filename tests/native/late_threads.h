// Threads that start late, for the programs of the sanitizers.
#pragma once
#include <random>
#include <thread>
#include <vector>

#include "checked.h"

// Vectors and the like as the headers take them.
template <class V>
auto list(V& v) { return jaxspv::List<std::remove_pointer_t<decltype(v.data())>>{{v.data()}, int64_t(v.size())}; }
template <class T>
jaxspv::Entries<const T> entries(const std::vector<T>& v) { return {{v.data()}}; }

struct Threads {  // of its own, some of which start late; a task may be refused
  std::mt19937& random;
  std::vector<std::thread> all;
  static bool schedule(void* self, void (*task)(void*), void* data) {
    auto& me = *static_cast<Threads*>(self);
    if (me.random() % 16 == 0) return false;
    me.all.emplace_back(task, data);
    return true;
  }
  ~Threads() {
    for (auto& t : all) t.join();
  }
};
