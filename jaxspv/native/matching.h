// Maximum matchings of bipartite graphs by depth-first searches with a look ahead. Pothen, Fan,
// "Computing the block triangular form of a sparse matrix", ACM TOMS 16, 1990; rows read forwards
// and backwards in alternate phases: Duff, Kaya, Ucar, "Design, implementation, and analysis of maximum
// transversal algorithms", ACM TOMS 38, 2011.
#pragma once
#include <algorithm>
#include <vector>

#include "checked.h"

namespace jaxspv {

// column[i], row[j]: what row i and column j are matched with, -1 for nothing.
class Matching {
 public:
  Matching(const Matrix& a, Id* column, Id* row)
      : a_(a), column_(column), row_(row), ahead_(a.ptr, a.ptr + a.rows), next_(a.rows), seen_(a.columns, 0) {
    std::fill(column_, column_ + a_.rows, -1);
    std::fill(row_, row_ + a_.columns, -1);
  }

  void run() {
    for (Id i = 0; i < a_.rows; ++i) take(i);
    std::vector<Id> left;
    for (Id i = 0; i < a_.rows; ++i)
      if (column_[i] < 0 && degree(a_, i)) left.push_back(i);
    for (size_t before = left.size() + 1; left.size() < before;) {
      before = left.size();
      ++phase_;
      left.erase(std::remove_if(left.begin(), left.end(), [&](Id i) { return augment(i); }), left.end());
    }
  }

 private:
  // Matches a row with a column that was free until now. Columns stay matched, so that no entry is
  // looked at twice.
  bool take(Id i) {
    for (Id& e = ahead_[i]; e < a_.ptr[i + 1]; ++e) {
      const Id j = a_.idx[e];
      if (row_[j] >= 0) continue;
      return column_[i] = j, row_[j] = i, true;
    }
    return false;
  }

  // The next column of a row that this phase has not seen, -1 for none.
  Id unseen(Id i) {
    const Id first = a_.ptr[i], last = a_.ptr[i + 1];
    for (Id& k = next_[i]; k < last - first;) {
      const Id j = a_.idx[phase_ & 1 ? first + k : last - 1 - k];
      ++k;
      if (seen_[j] != phase_) return seen_[j] = phase_, j;
    }
    return -1;
  }

  // Follows a path from an unmatched row to a free column, and swaps its entries.
  bool augment(Id root) {
    path_.assign(1, root);
    next_[root] = 0;
    while (!path_.empty()) {
      const Id i = path_.back(), held = column_[i];
      if (take(i)) {
        Id free = held;  // each row before takes the column that the one behind it held
        for (size_t k = path_.size() - 1; k-- > 0;) {
          const Id v = path_[k];
          std::swap(column_[v], free);
          row_[column_[v]] = v;
        }
        return true;
      }
      const Id j = unseen(i);
      if (j < 0) {
        path_.pop_back();
      } else {
        next_[row_[j]] = 0;
        path_.push_back(row_[j]);
      }
    }
    return false;
  }

  const Matrix a_;
  Id *column_, *row_;
  Id phase_ = 0;
  std::vector<Id> ahead_, next_, seen_, path_;
};

inline void matching(Rectangle a, Id* column, List<Id> row) {
  expect(row.size == a.columns, "a row for each column");
  Matching(a, column, row).run();
}

}  // namespace jaxspv
