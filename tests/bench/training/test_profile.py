"""Kernels find their class, and classes their share of a step."""

from __future__ import annotations

import pytest

from dragoman.bench.training import profile
from dragoman.bench.training.profile import Kernel, busy_milliseconds, classify, summarize_kernels

NAMES = {
    profile.MATRIX: [
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopB_NTN",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_TNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nt",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, false>",
        "triton_tem_fused_mm_12",
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
    ],
    profile.ATTENTION: [
        "attention_forward",
        "attention_backward_keys",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false>>",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64",
        "triton_tem_fused_flex_attention_backward_3",
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    ],
    profile.NORM: [
        "residual_norm_forward",
        "residual_drop",
        "norm_backward",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>",
        "void at::native::(anonymous namespace)::cuComputeGradInput<float, float>",
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16>",
        "triton_per_fused__to_copy_add_native_dropout_native_layer_norm_7",
        "aten::native_layer_norm",
        "aten::bernoulli_",
    ],
    profile.FEED_FORWARD: [
        "feed_forward_backward",
        "void at::native::vectorized_elementwise_kernel<8, launch_clamp_scalar(c10::BFloat16)>",
        "triton_poi_fused_relu_3",
        "aten::threshold_backward",
    ],
    profile.LOSS: [
        "loss_scores",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>",
        "triton_red_fused__log_softmax__to_copy_21",
        "aten::_log_softmax_backward_data",
    ],
    profile.OPTIMIZER: [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
        "at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, FusedAdamMath>",
        "void multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float, NormType>>",
        "void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float>",
        "aten::_fused_adamw_",
        "aten::_foreach_lerp_",
    ],
    profile.EMBEDDING: [
        "embedding_forward",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>",
        "void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel>",
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>",
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)",
        "aten::embedding_dense_backward",
    ],
    profile.COPIES: [
        "Memcpy HtoD (Pinned -> Device)",
        "Memset (Device)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>",
        "void at::native::vectorized_elementwise_kernel<8, bfloat16_copy_kernel_cuda>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        "aten::copy_",
    ],
    profile.OTHER: [
        "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor>>",
        "void elementwise_kernel_with_index<int, arange_cuda_out>",
        "aten::mul",
    ],
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in NAMES.items() for name in names]
)
def test_a_name_tells_the_class(name: str, kind: str) -> None:
    assert classify(name) == kind


def test_a_device_is_busy_while_any_kernel_runs() -> None:
    # 0 … 1000, 500 … 2000 and, inside that, 600 … 700; then 3000 … 3500.
    found = [Kernel("d", 3000, 500), Kernel("a", 0, 1000), Kernel("b", 500, 1500)]
    assert busy_milliseconds([*found, Kernel("c", 600, 100)]) == pytest.approx(2.5)


def test_the_table_is_of_one_step_and_gaps_fill_it_up() -> None:
    two_steps = [
        Kernel("aten::mm", 0, 3000),
        Kernel("attention_forward", 3000, 1000),
        Kernel("aten::mm", 5000, 3000),
        Kernel("attention_forward", 8000, 1000),
    ]
    lines = summarize_kernels(two_steps, steps=2, milliseconds=5.0)
    assert [(line.name, line.milliseconds) for line in lines] == [
        (profile.MATRIX, pytest.approx(3)),
        (profile.ATTENTION, pytest.approx(1)),
        (profile.GAPS, pytest.approx(1)),
    ]
    assert sum(line.share for line in lines) == pytest.approx(1)
