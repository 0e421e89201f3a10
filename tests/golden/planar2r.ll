; planar2r.forward_dynamics: 31 operations, 4 lanes of float64
; @sincos: see emit/llvm/sincos.py
declare ptr @malloc(i64)
declare void @free(ptr)
declare double @tan(double)
declare double @asin(double)
declare double @acos(double)
declare double @atan2(double, double)
declare double @exp(double)
declare double @log(double)
declare double @tanh(double)
define internal i64 @state(ptr noalias %ws, ptr noalias %in_q, ptr noalias %in_v, ptr noalias %in_tau, ptr noalias %out_forward_dynamics) nounwind {
  %x1 = load double, ptr %in_q, align 8
  %p2 = getelementptr i8, ptr %in_q, i64 8
  %x3 = load double, ptr %p2, align 8
  %p4 = getelementptr i8, ptr %ws, i64 32
  store double %x3, ptr %p4, align 8
  %p5 = getelementptr i8, ptr %ws, i64 40
  store double %x1, ptr %p5, align 8
  %p6 = getelementptr i8, ptr %ws, i64 48
  store double zeroinitializer, ptr %p6, align 8
  %p7 = getelementptr i8, ptr %ws, i64 56
  store double zeroinitializer, ptr %p7, align 8
  %p8 = getelementptr i8, ptr %ws, i64 32
  %p9 = getelementptr i8, ptr %ws, i64 64
  %p10 = getelementptr i8, ptr %ws, i64 96
  call void @sincos(ptr %p8, ptr %p9, ptr %p10, i64 1)
  %x11 = load double, ptr %in_v, align 8
  %p12 = getelementptr i8, ptr %in_v, i64 8
  %x13 = load double, ptr %p12, align 8
  %p14 = getelementptr i8, ptr %ws, i64 72
  %x15 = load double, ptr %p14, align 8
  %v16 = fmul double 0x40239EB851EB851F, %x15
  %p17 = getelementptr i8, ptr %ws, i64 96
  %x18 = load double, ptr %p17, align 8
  %v19 = call double @llvm.fma.f64(double 0x3FD0000000000000, double %x18, double 0x3FC8000000000000)
  %p20 = getelementptr i8, ptr %ws, i64 104
  %x21 = load double, ptr %p20, align 8
  %v22 = fmul double 0x40239EB851EB851F, %x21
  %v23 = fadd double %x11, %x13
  %t24 = fneg double %x11
  %v25 = call double @llvm.fma.f64(double %x11, double %t24, double %v16)
  %v26 = fmul double 0x4015555555555555, %v19
  %v27 = fmul double %v23, %v23
  %v28 = fmul double %v22, %x18
  %v29 = call double @llvm.fma.f64(double 0x3FE0000000000000, double %x18, double 0x3FFF000000000000)
  %v30 = fmul double 0x3FD0000000000000, %v27
  %p31 = getelementptr i8, ptr %ws, i64 64
  %x32 = load double, ptr %p31, align 8
  %t33 = fneg double %v28
  %v34 = call double @llvm.fma.f64(double %x32, double %v25, double %t33)
  %t35 = fneg double %v26
  %v36 = call double @llvm.fma.f64(double %v19, double %t35, double %v29)
  %v37 = fmul double 0x3FD0000000000000, %v34
  %v38 = fdiv double 0x3FF0000000000000, %v36
  %x39 = load double, ptr %in_tau, align 8
  %p40 = getelementptr i8, ptr %in_tau, i64 8
  %x41 = load double, ptr %p40, align 8
  %v42 = call double @llvm.fma.f64(double %x32, double %v30, double %v37)
  %v43 = fadd double %x41, %v37
  %t44 = fneg double %v42
  %v45 = call double @llvm.fma.f64(double 0x40339EB851EB851F, double %x21, double %t44)
  %v46 = fsub double %x39, %v45
  %t47 = fneg double %v26
  %v48 = call double @llvm.fma.f64(double %v43, double %t47, double %v46)
  %v49 = fmul double %v38, %v48
  %v50 = fmul double 0x4015555555555555, %v43
  %t51 = fneg double %v49
  %v52 = call double @llvm.fma.f64(double %v26, double %t51, double %v50)
  store double %v49, ptr %out_forward_dynamics, align 8
  %p53 = getelementptr i8, ptr %out_forward_dynamics, i64 8
  store double %v52, ptr %p53, align 8
  %t54 = fadd double %v49, %v52
  store double %t54, ptr %ws, align 8
  %sum = load double, ptr %ws, align 8
  %size = call double @llvm.fabs.f64(double %sum)
  %bad = fcmp uge double %size, 0x7FF0000000000000
  %bits = bitcast i1 %bad to i1
  %any = icmp ne i1 %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
}
define internal i64 @block(ptr noalias %ws, ptr noalias %in_q, ptr noalias %in_v, ptr noalias %in_tau, ptr noalias %out_forward_dynamics, i64 %stride_in_q, i64 %stride_in_v, i64 %stride_in_tau, i64 %stride_out_forward_dynamics) nounwind alignstack(32) align 64 {
  %t1 = mul i64 %stride_in_q, 0
  %p2 = getelementptr i8, ptr %in_q, i64 %t1
  %x3 = load <2 x double>, ptr %p2, align 8
  %t4 = mul i64 %stride_in_q, 1
  %p5 = getelementptr i8, ptr %in_q, i64 %t4
  %x6 = load <2 x double>, ptr %p5, align 8
  %t7 = mul i64 %stride_in_q, 2
  %p8 = getelementptr i8, ptr %in_q, i64 %t7
  %x9 = load <2 x double>, ptr %p8, align 8
  %t10 = mul i64 %stride_in_q, 3
  %p11 = getelementptr i8, ptr %in_q, i64 %t10
  %x12 = load <2 x double>, ptr %p11, align 8
  %s13 = shufflevector <2 x double> %x3, <2 x double> %x9, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s14 = shufflevector <2 x double> %x6, <2 x double> %x12, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s15 = shufflevector <4 x double> %s13, <4 x double> %s14, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s16 = shufflevector <4 x double> %s13, <4 x double> %s14, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %p17 = getelementptr i8, ptr %ws, i64 32
  store <4 x double> %s16, ptr %p17, align 32
  %p18 = getelementptr i8, ptr %ws, i64 64
  store <4 x double> %s15, ptr %p18, align 32
  %p19 = getelementptr i8, ptr %ws, i64 32
  %p20 = getelementptr i8, ptr %ws, i64 96
  %p21 = getelementptr i8, ptr %ws, i64 160
  call void @sincos(ptr %p19, ptr %p20, ptr %p21, i64 2)
  %t22 = mul i64 %stride_in_v, 0
  %p23 = getelementptr i8, ptr %in_v, i64 %t22
  %x24 = load <2 x double>, ptr %p23, align 8
  %t25 = mul i64 %stride_in_v, 1
  %p26 = getelementptr i8, ptr %in_v, i64 %t25
  %x27 = load <2 x double>, ptr %p26, align 8
  %t28 = mul i64 %stride_in_v, 2
  %p29 = getelementptr i8, ptr %in_v, i64 %t28
  %x30 = load <2 x double>, ptr %p29, align 8
  %t31 = mul i64 %stride_in_v, 3
  %p32 = getelementptr i8, ptr %in_v, i64 %t31
  %x33 = load <2 x double>, ptr %p32, align 8
  %s34 = shufflevector <2 x double> %x24, <2 x double> %x30, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s35 = shufflevector <2 x double> %x27, <2 x double> %x33, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s36 = shufflevector <4 x double> %s34, <4 x double> %s35, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s37 = shufflevector <4 x double> %s34, <4 x double> %s35, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %p38 = getelementptr i8, ptr %ws, i64 128
  %x39 = load <4 x double>, ptr %p38, align 32
  %v40 = fmul <4 x double> splat (double 0x40239EB851EB851F), %x39
  %p41 = getelementptr i8, ptr %ws, i64 160
  %x42 = load <4 x double>, ptr %p41, align 32
  %v43 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3FD0000000000000), <4 x double> %x42, <4 x double> splat (double 0x3FC8000000000000))
  %p44 = getelementptr i8, ptr %ws, i64 192
  %x45 = load <4 x double>, ptr %p44, align 32
  %v46 = fmul <4 x double> splat (double 0x40239EB851EB851F), %x45
  %v47 = fadd <4 x double> %s36, %s37
  %t48 = fneg <4 x double> %s36
  %v49 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s36, <4 x double> %t48, <4 x double> %v40)
  %v50 = fmul <4 x double> splat (double 0x4015555555555555), %v43
  %v51 = fmul <4 x double> %v47, %v47
  %v52 = fmul <4 x double> %v46, %x42
  %v53 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3FE0000000000000), <4 x double> %x42, <4 x double> splat (double 0x3FFF000000000000))
  %v54 = fmul <4 x double> splat (double 0x3FD0000000000000), %v51
  %p55 = getelementptr i8, ptr %ws, i64 96
  %x56 = load <4 x double>, ptr %p55, align 32
  %t57 = fneg <4 x double> %v52
  %v58 = call <4 x double> @llvm.fma.v4f64(<4 x double> %x56, <4 x double> %v49, <4 x double> %t57)
  %t59 = fneg <4 x double> %v50
  %v60 = call <4 x double> @llvm.fma.v4f64(<4 x double> %v43, <4 x double> %t59, <4 x double> %v53)
  %v61 = fmul <4 x double> splat (double 0x3FD0000000000000), %v58
  %v62 = fdiv <4 x double> splat (double 0x3FF0000000000000), %v60
  %t63 = mul i64 %stride_in_tau, 0
  %p64 = getelementptr i8, ptr %in_tau, i64 %t63
  %x65 = load <2 x double>, ptr %p64, align 8
  %t66 = mul i64 %stride_in_tau, 1
  %p67 = getelementptr i8, ptr %in_tau, i64 %t66
  %x68 = load <2 x double>, ptr %p67, align 8
  %t69 = mul i64 %stride_in_tau, 2
  %p70 = getelementptr i8, ptr %in_tau, i64 %t69
  %x71 = load <2 x double>, ptr %p70, align 8
  %t72 = mul i64 %stride_in_tau, 3
  %p73 = getelementptr i8, ptr %in_tau, i64 %t72
  %x74 = load <2 x double>, ptr %p73, align 8
  %s75 = shufflevector <2 x double> %x65, <2 x double> %x71, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s76 = shufflevector <2 x double> %x68, <2 x double> %x74, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s77 = shufflevector <4 x double> %s75, <4 x double> %s76, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s78 = shufflevector <4 x double> %s75, <4 x double> %s76, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %v79 = call <4 x double> @llvm.fma.v4f64(<4 x double> %x56, <4 x double> %v54, <4 x double> %v61)
  %v80 = fadd <4 x double> %s78, %v61
  %t81 = fneg <4 x double> %v79
  %v82 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x40339EB851EB851F), <4 x double> %x45, <4 x double> %t81)
  %v83 = fsub <4 x double> %s77, %v82
  %t84 = fneg <4 x double> %v50
  %v85 = call <4 x double> @llvm.fma.v4f64(<4 x double> %v80, <4 x double> %t84, <4 x double> %v83)
  %v86 = fmul <4 x double> %v62, %v85
  %v87 = fmul <4 x double> splat (double 0x4015555555555555), %v80
  %t88 = fneg <4 x double> %v86
  %v89 = call <4 x double> @llvm.fma.v4f64(<4 x double> %v50, <4 x double> %t88, <4 x double> %v87)
  %s90 = shufflevector <4 x double> %v86, <4 x double> %v89, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s91 = shufflevector <4 x double> %v86, <4 x double> %v89, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %s92 = shufflevector <4 x double> %s90, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %t93 = mul i64 %stride_out_forward_dynamics, 0
  %p94 = getelementptr i8, ptr %out_forward_dynamics, i64 %t93
  store <2 x double> %s92, ptr %p94, align 8
  %s95 = shufflevector <4 x double> %s91, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %t96 = mul i64 %stride_out_forward_dynamics, 1
  %p97 = getelementptr i8, ptr %out_forward_dynamics, i64 %t96
  store <2 x double> %s95, ptr %p97, align 8
  %s98 = shufflevector <4 x double> %s90, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %t99 = mul i64 %stride_out_forward_dynamics, 2
  %p100 = getelementptr i8, ptr %out_forward_dynamics, i64 %t99
  store <2 x double> %s98, ptr %p100, align 8
  %s101 = shufflevector <4 x double> %s91, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %t102 = mul i64 %stride_out_forward_dynamics, 3
  %p103 = getelementptr i8, ptr %out_forward_dynamics, i64 %t102
  store <2 x double> %s101, ptr %p103, align 8
  %t104 = fadd <4 x double> %v86, %v89
  store <4 x double> %t104, ptr %ws, align 32
  %sum = load <4 x double>, ptr %ws, align 32
  %size = call <4 x double> @llvm.fabs.v4f64(<4 x double> %sum)
  %bad = fcmp uge <4 x double> %size, splat (double 0x7FF0000000000000)
  %bits = bitcast <4 x i1> %bad to i4
  %any = icmp ne i4 %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
}
define i64 @one(ptr %in_q, ptr %in_v, ptr %in_tau, ptr %out_forward_dynamics) nounwind {
  %ws = alloca [128 x i8], align 64
  %status = call i64 @state(ptr %ws, ptr %in_q, ptr %in_v, ptr %in_tau, ptr %out_forward_dynamics)
  ret i64 %status
}
define i64 @many(i64 %n, ptr %in_q, i64 %stride_in_q, ptr %in_v, i64 %stride_in_v, ptr %in_tau, i64 %stride_in_tau, ptr %out_forward_dynamics, i64 %stride_out_forward_dynamics) nounwind {
  %few = icmp ult i64 %n, 4
  br i1 %few, label %some, label %begin
begin:
  %ws = alloca [224 x i8], align 64
  %final = sub i64 %n, 4
  br label %loop
loop:
  %row = phi i64 [0, %begin], [%next, %loop]
  %seen = phi i64 [0, %begin], [%status, %loop]
  %after = add i64 %row, 4
  %inside = icmp ule i64 %after, %final
  %next = select i1 %inside, i64 %after, i64 %final
  %b0.o = mul i64 %row, %stride_in_q
  %b0 = getelementptr i8, ptr %in_q, i64 %b0.o
  %b1.o = mul i64 %row, %stride_in_v
  %b1 = getelementptr i8, ptr %in_v, i64 %b1.o
  %b2.o = mul i64 %row, %stride_in_tau
  %b2 = getelementptr i8, ptr %in_tau, i64 %b2.o
  %b3.o = mul i64 %row, %stride_out_forward_dynamics
  %b3 = getelementptr i8, ptr %out_forward_dynamics, i64 %b3.o
  %bad = call i64 @block(ptr %ws, ptr %b0, ptr %b1, ptr %b2, ptr %b3, i64 %stride_in_q, i64 %stride_in_v, i64 %stride_in_tau, i64 %stride_out_forward_dynamics)
  %status = or i64 %seen, %bad
  %more = icmp ult i64 %row, %final
  br i1 %more, label %loop, label %done
done:
  ret i64 %status
some:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %end, label %single
single:
  %k = phi i64 [0, %some], [%k.next, %single]
  %k.seen = phi i64 [0, %some], [%k.status, %single]
  %s0.o = mul i64 %k, %stride_in_q
  %s0 = getelementptr i8, ptr %in_q, i64 %s0.o
  %s1.o = mul i64 %k, %stride_in_v
  %s1 = getelementptr i8, ptr %in_v, i64 %s1.o
  %s2.o = mul i64 %k, %stride_in_tau
  %s2 = getelementptr i8, ptr %in_tau, i64 %s2.o
  %s3.o = mul i64 %k, %stride_out_forward_dynamics
  %s3 = getelementptr i8, ptr %out_forward_dynamics, i64 %s3.o
  %k.bad = call i64 @one(ptr %s0, ptr %s1, ptr %s2, ptr %s3)
  %k.status = or i64 %k.seen, %k.bad
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n
  br i1 %k.more, label %single, label %end
end:
  %result = phi i64 [0, %some], [%k.status, %single]
  ret i64 %result
}
@pool = internal global {} {}, align 64
!0 = !{}
@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to
