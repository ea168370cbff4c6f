#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "convert.hpp"
#include "scan_call.hpp"
#include "scan_pack.hpp"
#include "scan_part_states.hpp"
#include "scan_tiles.hpp"
#include "state_step.hpp"
#include "tuning_state_update.hpp"
#include "vector_math.hpp"

// The scan of some heads of one row: pieces outside, heads inside, so that what the heads of a
// group share (B, C and their products) is prepared once.

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

template <class Element>
class part_runner {
 public:
  part_runner(scan_call const& call, scan_row const& row, scan_part const& part,
              scan_scratch& scratch) noexcept
      : problem_(call.layout.problem),
        rule_(call.layout.rule),
        arguments_(call.arguments),
        row_(row),
        part_(part),
        scratch_(scratch),
        states_(call, row, part, scratch),
        from_memory_(rows_of(call) * problem_.nheads * problem_.headdim * problem_.dstate *
                         static_cast<std::int64_t>(sizeof(float)) >
                     state_update_tuning_for(pack_width).hot_bytes) {}

  void run() noexcept {
    std::fill_n(scratch_.exponents, heads(), 0.0);
    auto const* ids = problem_.pack == packing::seq_idx
                          ? static_cast<std::int32_t const*>(arguments_.seq_idx.data) +
                                row_.batch * arguments_.seq_idx.stride(0)
                          : nullptr;
    scan_walker walker(rule_, row_.length, problem_.intermediate_every, ids,
                       ids == nullptr ? 0 : arguments_.seq_idx.stride(1), states_.is_zero());
    scan_piece piece{};
    while (walker.next(piece)) {
      if (piece.padding) {
        clear_out(piece);
      } else {
        if (piece.resets) states_.reset();
        run_piece(piece);
      }
      if (piece.snapshot_after) {
        states_.store_snapshot((piece.begin + piece.count) / problem_.intermediate_every - 1);
      }
    }
    states_.store_final();
    store_total_decay(walker.sequences() > 1);
  }

 private:
  [[nodiscard]] std::int64_t heads() const noexcept { return part_.end_head - part_.first_head; }
  // Element (batch, token, outer, 0) of a tensor of rank 4, token counted from the row's first.
  template <class View>
  [[nodiscard]] auto* at(View const& view, std::int64_t token, std::int64_t outer) const noexcept {
    using pointer = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(view.data)>>,
                                       Element const*, Element*>;
    return static_cast<pointer>(view.data) + row_.batch * view.stride(0) +
           (row_.begin + token) * view.stride(1) + outer * view.stride(2);
  }

  void store_total_decay(bool was_reset) noexcept {
    if (!problem_.has_total_decay || part_.columns.begin != 0) return;
    auto const& to = arguments_.total_decay;
    for (std::int64_t head = 0; head < heads(); ++head) {
      static_cast<float*>(
          to.data)[row_.row * to.stride(0) + (part_.first_head + head) * to.stride(1)] =
          was_reset ? 0.0F : static_cast<float>(std::exp(scratch_.exponents[head]));
    }
  }

  void clear_out(scan_piece const& piece) noexcept {
    auto const columns = part_.columns.end - part_.columns.begin;
    for (std::int64_t token = piece.begin; token < piece.begin + piece.count; ++token) {
      for (std::int64_t head = part_.first_head; head < part_.end_head; ++head) {
        std::fill_n(at(arguments_.out, token, head) + part_.columns.begin, columns, Element(0.0F));
      }
    }
  }

  void run_piece(scan_piece const& piece) noexcept {
    bool const is_last = piece.begin + piece.count == row_.length;
    keep_state_ = !is_last || states_.is_wanted() || piece.snapshot_after;
    bool const sequential = piece.count <= rule_.sequential;
    if (sequential && states_.is_zero()) states_.materialise();
    states_.begin_piece(is_last && !piece.snapshot_after);
    auto const heads_of_group = problem_.nheads / problem_.ngroups;
    std::int64_t packed_group = -1;
    for (std::int64_t head = part_.first_head; head < part_.end_head; ++head) {
      auto const group = head / heads_of_group;
      if (group != packed_group) {
        pack_group(piece, group, sequential);
        packed_group = group;
      }
      prepare_head(piece, head, sequential);
      if (sequential && piece.count == 1 && states_.is_in_place()) {
        run_token_in_place(piece, head);
      } else if (sequential) {
        run_tokens(piece, head);
      } else {
        run_chunk(piece, head);
      }
    }
    if (sequential || keep_state_) states_.end_piece();
  }

  void pack_group(scan_piece const& piece, std::int64_t group, bool sequential) noexcept {
    auto const* B = at(arguments_.B, piece.begin, group);
    auto const* C = at(arguments_.C, piece.begin, group);
    auto const B_stride = arguments_.B.stride(1);
    auto const C_stride = arguments_.C.stride(1);
    auto const dstate = problem_.dstate;
    pack_rows(B, B_stride, piece.count, dstate, scratch_.b, scratch_.dstate_stride);
    if (sequential) {
      pack_rows(C, C_stride, piece.count, dstate, scratch_.c_transposed, scratch_.dstate_stride);
      return;
    }
    auto const stride = scratch_.token_stride;
    pack_transposed(C, C_stride, piece.count, dstate, scratch_.c_transposed, stride);
    // C B^T as (j, i), of which i >= j is used: from the pack that j lies in on.
    for_each_tile(piece.count, product_rows, [&](std::int64_t first, int rows) {
      auto const begin = first / pack_width * pack_width;
      for (auto i = begin; i < piece.count; i += panel_width) {
        auto const left = (piece.count - i + pack_width - 1) / pack_width;
        kokkos::run(product_tile{scratch_.b + first * scratch_.dstate_stride,
                                 scratch_.dstate_stride, scratch_.c_transposed + i, stride, dstate,
                                 scratch_.products + first * stride + i, stride},
                    rows, static_cast<int>(std::min<std::int64_t>(left, tuning.tile_vectors)));
      }
    });
  }

  void prepare_head(scan_piece const& piece, std::int64_t head, bool sequential) noexcept {
    auto const& dt = arguments_.dt;
    auto const& D = arguments_.D;
    float const A = static_cast<float const*>(arguments_.A.data)[head * arguments_.A.stride(0)];
    float const bias = problem_.has_dt_bias
                           ? element_at(arguments_.dt_bias.data, problem_.dt_bias_type,
                                        head * arguments_.dt_bias.stride(0))
                           : 0.0F;
    auto const first =
        row_.batch * dt.stride(0) + (row_.begin + piece.begin) * dt.stride(1) + head * dt.stride(2);
    compute_deltas(
        static_cast<char const*>(dt.data) + first * static_cast<std::int64_t>(size_of(problem_.dt)),
        problem_.dt, dt.stride(1), piece.count,
        step_rule{A, bias, problem_.dt_softplus, problem_.dt_limit}, scratch_.steps.delta);
    if (sequential) {
      compute_token_decays(piece.count, A, scratch_.steps);
    } else {
      compute_decays(piece.count, A, scratch_.steps);
      if (!scratch_.steps.factored) {
        weigh_products(scratch_.steps, piece.count, scratch_.products, scratch_.weighted,
                       scratch_.token_stride);
      }
    }
    scratch_.exponents[head - part_.first_head] += scratch_.steps.total;
    if (problem_.D == skip::none) return;
    auto const columns = part_.columns.end - part_.columns.begin;
    if (problem_.D == skip::per_head) {
      std::fill_n(scratch_.skip, columns, element_at(D.data, problem_.D_type, head * D.stride(0)));
      return;
    }
    for (std::int64_t p = 0; p < columns; ++p) {
      scratch_.skip[p] = element_at(D.data, problem_.D_type,
                                    head * D.stride(0) + (part_.columns.begin + p) * D.stride(1));
    }
  }

  // Calls visit(first column, vectors) for each panel of a head.
  template <class Visit>
  void for_each_panel(Visit const& visit) noexcept {
    for (auto column = part_.columns.begin; column < part_.columns.end; column += panel_width) {
      visit(column, panel_vectors(part_.columns, column));
    }
  }

  void run_chunk(scan_piece const& piece, std::int64_t head) noexcept {
    auto const& steps = scratch_.steps;
    auto const tokens = scratch_.token_stride;
    auto const dstate = problem_.dstate;
    for_each_panel([&](std::int64_t column, int vectors) {
      std::int64_t const width = std::int64_t{vectors} * pack_width;
      auto const used = std::min(width, part_.columns.end - column);
      auto const* x = at(arguments_.x, piece.begin, head) + column;
      auto const x_stride = arguments_.x.stride(1);
      // The next head's rows start in lines that the hardware does not foresee.
      auto const ahead = head + 1 < part_.end_head ? arguments_.x.stride(2) : 0;
      float* x_state = scratch_.x;
      if (steps.factored) {
        pack_weighted(x, x_stride, piece.count, used, ahead, steps.weight, scratch_.x, width);
      } else {
        x_state = scratch_.x_state;
        pack_weighted(x, x_stride, piece.count, used, ahead, steps.weight, x_state, width);
        pack_rows(x, x_stride, piece.count, used, scratch_.x, width);
      }
      bool const from_zero = states_.is_zero();
      auto const source = from_zero ? state_rows{nullptr, 0} : states_.source(head, column);
      auto const target = states_.target(head, column);
      float const* within = steps.factored ? scratch_.products : scratch_.weighted;
      for_each_tile(piece.count, tuning.tile_rows, [&](std::int64_t first, int rows) {
        output_tile tile{{scratch_.c_transposed + first, tokens, source.data, source.stride,
                          from_zero ? 0 : dstate},
                         {within + first, tokens, scratch_.x, width, first},
                         steps.row + first,
                         !steps.factored,
                         nullptr,
                         nullptr,
                         0,
                         nullptr,
                         0};
        run_output(tile, piece.begin + first, head, column, rows, vectors, used);
      });
      if (!keep_state_) return;
      for_each_tile(dstate, tuning.tile_rows, [&](std::int64_t first, int rows) {
        kokkos::run(
            update_tile{{scratch_.b + first, scratch_.dstate_stride, x_state, width, piece.count},
                        from_zero ? nullptr : source.data + first * source.stride,
                        source.stride,
                        target.data + first * target.stride,
                        target.stride,
                        steps.factored ? 1.0F : steps.decay,
                        steps.factored ? steps.decay : 1.0F,
                        from_zero},
            rows, vectors);
      });
    });
  }

  // Straight into `out` where the tile's numbers are out's, through scratch otherwise.
  void run_output(output_tile& tile, std::int64_t token, std::int64_t head, std::int64_t column,
                  int rows, int vectors, std::int64_t used) noexcept {
    std::int64_t const width = std::int64_t{vectors} * pack_width;
    if constexpr (std::is_same_v<Element, float>) {
      if (used == width && !problem_.has_z) {
        if (problem_.D != skip::none) {
          tile.skip = scratch_.skip + (column - part_.columns.begin);
          tile.x = at(arguments_.x, token, head) + column;
          tile.x_stride = arguments_.x.stride(1);
        }
        tile.out = at(arguments_.out, token, head) + column;
        tile.out_stride = arguments_.out.stride(1);
        kokkos::run(tile, rows, vectors);
        return;
      }
    }
    tile.out = scratch_.tile;
    tile.out_stride = width;
    kokkos::run(tile, rows, vectors);
    finish_rows(token, head, column, rows, used, width);
  }

  // Skip connection, gate and conversion of rows in scratch.tile.
  void finish_rows(std::int64_t token, std::int64_t head, std::int64_t column, int rows,
                   std::int64_t used, std::int64_t width) noexcept {
    finishing const finish{
        scratch_.tile, width,
        problem_.D == skip::none ? nullptr : scratch_.skip + (column - part_.columns.begin)};
    for (int r = 0; r < rows; ++r) {
      finish_row(finish, r, at(arguments_.x, token + r, head) + column,
                 problem_.has_z ? at(arguments_.z, token + r, head) + column : nullptr,
                 at(arguments_.out, token + r, head) + column, used);
    }
  }

  // The same bits as run_tokens, but the state passes in one stream, as when decoding.
  void run_token_in_place(scan_piece const& piece, std::int64_t head) noexcept {
    constexpr std::int64_t most = 256;
    alignas(sizeof(pack)) float x_delta[most];
    alignas(sizeof(pack)) float y[most];
    pack const delta(scratch_.steps.weight[0]);
    for (auto column = part_.columns.begin; column < part_.columns.end; column += most) {
      auto const used = std::min(most, part_.columns.end - column);
      auto const* x = at(arguments_.x, piece.begin, head) + column;
      for (std::int64_t p = 0; p < used; p += pack_width) store(x_delta + p, load(x + p) * delta);
      auto const source = states_.source(head, column);
      auto const target = states_.target(head, column);
      step_by_channel({source.data, dtype::f32, source.stride, target.data, dtype::f32,
                       target.stride, from_memory_},
                      {scratch_.steps.row[0], scratch_.b, scratch_.c_transposed, x_delta, y}, used,
                      problem_.dstate);
      finishing const finish{
          y, used,
          problem_.D == skip::none ? nullptr : scratch_.skip + (column - part_.columns.begin)};
      finish_row(finish, 0, x,
                 problem_.has_z ? at(arguments_.z, piece.begin, head) + column : nullptr,
                 at(arguments_.out, piece.begin, head) + column, used);
    }
  }

  void run_tokens(scan_piece const& piece, std::int64_t head) noexcept {
    auto const& steps = scratch_.steps;
    for_each_panel([&](std::int64_t column, int vectors) {
      std::int64_t const width = std::int64_t{vectors} * pack_width;
      auto const used = std::min(width, part_.columns.end - column);
      pack_weighted(at(arguments_.x, piece.begin, head) + column, arguments_.x.stride(1),
                    piece.count, used, 0, steps.weight, scratch_.x, width);
      auto source = states_.source(head, column);
      auto const target = states_.target(head, column);
      for (std::int64_t first = 0; first < piece.count; first += recurrence_tokens) {
        int const tokens =
            static_cast<int>(std::min<std::int64_t>(piece.count - first, recurrence_tokens));
        kokkos::run(recurrence_tile{source.data, source.stride, target.data, target.stride,
                                    problem_.dstate, scratch_.b + first * scratch_.dstate_stride,
                                    scratch_.c_transposed + first * scratch_.dstate_stride,
                                    scratch_.dstate_stride, scratch_.x + first * width, width,
                                    steps.row + first, scratch_.tile, width},
                    tokens, vectors);
        source = target;
        finish_rows(piece.begin + first, head, column, tokens, used, width);
      }
    });
  }

  scan_problem const& problem_;
  scan_rule const& rule_;
  scan_arguments const& arguments_;
  scan_row const& row_;
  scan_part const& part_;
  scan_scratch& scratch_;
  part_states states_;
  bool from_memory_;         // the call's states do not fit the nearest caches
  bool keep_state_ = false;  // somebody reads the states behind the piece
};

}  // namespace

template <class Element>
void run_part(scan_call const& call, scan_row const& row, scan_part const& part,
              scan_scratch& scratch) noexcept {
  part_runner<Element>(call, row, part, scratch).run();
}
template void run_part<float>(scan_call const&, scan_row const&, scan_part const&,
                              scan_scratch&) noexcept;
template void run_part<bfloat16>(scan_call const&, scan_row const&, scan_part const&,
                                 scan_scratch&) noexcept;
template void run_part<float16>(scan_call const&, scan_row const&, scan_part const&,
                                scan_scratch&) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
