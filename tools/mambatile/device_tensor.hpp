#pragma once

#include <vector>

#include <mambatile/backend.hpp>

// Host tensors as a backend sees them: themselves on the host, copies on its device elsewhere.

namespace mambatile::program {

class device_tensors {
 public:
  device_tensors(backend const& served_by, queue on) : backend_(served_by), on_(on) {}

  /// The tensor where the backend can read it. Absent stays absent.
  [[nodiscard]] const_tensor_view input(const_tensor_view const& host);
  /// Where the backend shall write what `fetch` brings to the host tensor; its contents of now come
  /// along. The host tensor must be packed (in any order of axes).
  [[nodiscard]] tensor_view output(tensor_view const& host);
  /// Waits for the queue and copies all outputs to the host.
  void fetch();

 private:
  [[nodiscard]] tensor_view copy(const_tensor_view const& host);

  struct pending {
    tensor_view host;
    void* device;
  };
  backend const& backend_;
  queue on_;
  std::vector<buffer> buffers_;
  std::vector<pending> outputs_;
};

}  // namespace mambatile::program
