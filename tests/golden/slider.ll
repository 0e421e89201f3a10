; slider.inverse_dynamics: 27 operations, 4 lanes of float64
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
define internal i64 @state(ptr noalias %ws, ptr noalias %in_q, ptr noalias %in_v, ptr noalias %in_a, ptr noalias %out_inverse_dynamics) nounwind {
  %x1 = load double, ptr %in_q, align 8
  %p2 = getelementptr i8, ptr %in_q, i64 8
  %x3 = load double, ptr %p2, align 8
  %p4 = getelementptr i8, ptr %ws, i64 32
  store double %x1, ptr %p4, align 8
  %p5 = getelementptr i8, ptr %ws, i64 40
  store double zeroinitializer, ptr %p5, align 8
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
  %x14 = load double, ptr %in_a, align 8
  %p15 = getelementptr i8, ptr %in_a, i64 8
  %x16 = load double, ptr %p15, align 8
  %p17 = getelementptr i8, ptr %ws, i64 64
  %x18 = load double, ptr %p17, align 8
  %v19 = fmul double 0x40239EB851EB851F, %x18
  %v20 = fadd double %x11, %x11
  %t21 = fneg double %x14
  %v22 = call double @llvm.fma.f64(double %x3, double %t21, double %v19)
  %v23 = fmul double %x11, %x11
  %t24 = fneg double %v20
  %v25 = call double @llvm.fma.f64(double %x13, double %t24, double %v22)
  %p26 = getelementptr i8, ptr %ws, i64 96
  %x27 = load double, ptr %p26, align 8
  %v28 = fmul double 0x40239EB851EB851F, %x27
  %v29 = fmul double 0x3FE0000000000000, %v25
  %t30 = fneg double %v23
  %v31 = call double @llvm.fma.f64(double %x3, double %t30, double %v28)
  %v32 = call double @llvm.fma.f64(double 0x3FE0000000000000, double %x14, double %v29)
  %v33 = fmul double 0x3FEC000000000000, %x14
  %v34 = fadd double %x16, %v31
  %v35 = fmul double 0x3FE0000000000000, %v23
  %v36 = call double @llvm.fma.f64(double 0x40139EB851EB851F, double %x18, double %v33)
  %t37 = fneg double %v29
  %v38 = call double @llvm.fma.f64(double %x3, double %v32, double %t37)
  %v39 = call double @llvm.fma.f64(double 0x3FE0000000000000, double %v34, double %v35)
  %v40 = fsub double %v36, %v38
  %v41 = call double @llvm.fma.f64(double 0x3FD0000000000000, double %x11, double %v40)
  %v42 = call double @llvm.fma.f64(double 0x4024000000000000, double %x3, double %v39)
  store double %v41, ptr %out_inverse_dynamics, align 8
  %p43 = getelementptr i8, ptr %out_inverse_dynamics, i64 8
  store double %v42, ptr %p43, align 8
  %t44 = fadd double %v41, %v42
  store double %t44, ptr %ws, align 8
  %sum = load double, ptr %ws, align 8
  %size = call double @llvm.fabs.f64(double %sum)
  %bad = fcmp uge double %size, 0x7FF0000000000000
  %bits = bitcast i1 %bad to i1
  %any = icmp ne i1 %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
}
define internal i64 @block(ptr noalias %ws, ptr noalias %in_q, ptr noalias %in_v, ptr noalias %in_a, ptr noalias %out_inverse_dynamics, i64 %stride_in_q, i64 %stride_in_v, i64 %stride_in_a, i64 %stride_out_inverse_dynamics) nounwind alignstack(32) align 64 {
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
  store <4 x double> %s15, ptr %p17, align 32
  %p18 = getelementptr i8, ptr %ws, i64 32
  %p19 = getelementptr i8, ptr %ws, i64 64
  %p20 = getelementptr i8, ptr %ws, i64 96
  call void @sincos(ptr %p18, ptr %p19, ptr %p20, i64 1)
  %t21 = mul i64 %stride_in_v, 0
  %p22 = getelementptr i8, ptr %in_v, i64 %t21
  %x23 = load <2 x double>, ptr %p22, align 8
  %t24 = mul i64 %stride_in_v, 1
  %p25 = getelementptr i8, ptr %in_v, i64 %t24
  %x26 = load <2 x double>, ptr %p25, align 8
  %t27 = mul i64 %stride_in_v, 2
  %p28 = getelementptr i8, ptr %in_v, i64 %t27
  %x29 = load <2 x double>, ptr %p28, align 8
  %t30 = mul i64 %stride_in_v, 3
  %p31 = getelementptr i8, ptr %in_v, i64 %t30
  %x32 = load <2 x double>, ptr %p31, align 8
  %s33 = shufflevector <2 x double> %x23, <2 x double> %x29, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s34 = shufflevector <2 x double> %x26, <2 x double> %x32, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s35 = shufflevector <4 x double> %s33, <4 x double> %s34, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s36 = shufflevector <4 x double> %s33, <4 x double> %s34, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %t37 = mul i64 %stride_in_a, 0
  %p38 = getelementptr i8, ptr %in_a, i64 %t37
  %x39 = load <2 x double>, ptr %p38, align 8
  %t40 = mul i64 %stride_in_a, 1
  %p41 = getelementptr i8, ptr %in_a, i64 %t40
  %x42 = load <2 x double>, ptr %p41, align 8
  %t43 = mul i64 %stride_in_a, 2
  %p44 = getelementptr i8, ptr %in_a, i64 %t43
  %x45 = load <2 x double>, ptr %p44, align 8
  %t46 = mul i64 %stride_in_a, 3
  %p47 = getelementptr i8, ptr %in_a, i64 %t46
  %x48 = load <2 x double>, ptr %p47, align 8
  %s49 = shufflevector <2 x double> %x39, <2 x double> %x45, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s50 = shufflevector <2 x double> %x42, <2 x double> %x48, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %s51 = shufflevector <4 x double> %s49, <4 x double> %s50, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s52 = shufflevector <4 x double> %s49, <4 x double> %s50, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %p53 = getelementptr i8, ptr %ws, i64 64
  %x54 = load <4 x double>, ptr %p53, align 32
  %v55 = fmul <4 x double> splat (double 0x40239EB851EB851F), %x54
  %v56 = fadd <4 x double> %s35, %s35
  %t57 = fneg <4 x double> %s51
  %v58 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s16, <4 x double> %t57, <4 x double> %v55)
  %v59 = fmul <4 x double> %s35, %s35
  %t60 = fneg <4 x double> %v56
  %v61 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s36, <4 x double> %t60, <4 x double> %v58)
  %p62 = getelementptr i8, ptr %ws, i64 96
  %x63 = load <4 x double>, ptr %p62, align 32
  %v64 = fmul <4 x double> splat (double 0x40239EB851EB851F), %x63
  %v65 = fmul <4 x double> splat (double 0x3FE0000000000000), %v61
  %t66 = fneg <4 x double> %v59
  %v67 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s16, <4 x double> %t66, <4 x double> %v64)
  %v68 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3FE0000000000000), <4 x double> %s51, <4 x double> %v65)
  %v69 = fmul <4 x double> splat (double 0x3FEC000000000000), %s51
  %v70 = fadd <4 x double> %s52, %v67
  %v71 = fmul <4 x double> splat (double 0x3FE0000000000000), %v59
  %v72 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x40139EB851EB851F), <4 x double> %x54, <4 x double> %v69)
  %t73 = fneg <4 x double> %v65
  %v74 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s16, <4 x double> %v68, <4 x double> %t73)
  %v75 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3FE0000000000000), <4 x double> %v70, <4 x double> %v71)
  %v76 = fsub <4 x double> %v72, %v74
  %v77 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3FD0000000000000), <4 x double> %s35, <4 x double> %v76)
  %v78 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x4024000000000000), <4 x double> %s16, <4 x double> %v75)
  %s79 = shufflevector <4 x double> %v77, <4 x double> %v78, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %s80 = shufflevector <4 x double> %v77, <4 x double> %v78, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %s81 = shufflevector <4 x double> %s79, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %t82 = mul i64 %stride_out_inverse_dynamics, 0
  %p83 = getelementptr i8, ptr %out_inverse_dynamics, i64 %t82
  store <2 x double> %s81, ptr %p83, align 8
  %s84 = shufflevector <4 x double> %s80, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %t85 = mul i64 %stride_out_inverse_dynamics, 1
  %p86 = getelementptr i8, ptr %out_inverse_dynamics, i64 %t85
  store <2 x double> %s84, ptr %p86, align 8
  %s87 = shufflevector <4 x double> %s79, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %t88 = mul i64 %stride_out_inverse_dynamics, 2
  %p89 = getelementptr i8, ptr %out_inverse_dynamics, i64 %t88
  store <2 x double> %s87, ptr %p89, align 8
  %s90 = shufflevector <4 x double> %s80, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %t91 = mul i64 %stride_out_inverse_dynamics, 3
  %p92 = getelementptr i8, ptr %out_inverse_dynamics, i64 %t91
  store <2 x double> %s90, ptr %p92, align 8
  %t93 = fadd <4 x double> %v77, %v78
  store <4 x double> %t93, ptr %ws, align 32
  %sum = load <4 x double>, ptr %ws, align 32
  %size = call <4 x double> @llvm.fabs.v4f64(<4 x double> %sum)
  %bad = fcmp uge <4 x double> %size, splat (double 0x7FF0000000000000)
  %bits = bitcast <4 x i1> %bad to i4
  %any = icmp ne i4 %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
}
define i64 @one(ptr %in_q, ptr %in_v, ptr %in_a, ptr %out_inverse_dynamics) nounwind {
  %ws = alloca [128 x i8], align 64
  %status = call i64 @state(ptr %ws, ptr %in_q, ptr %in_v, ptr %in_a, ptr %out_inverse_dynamics)
  ret i64 %status
}
define i64 @many(i64 %n, ptr %in_q, i64 %stride_in_q, ptr %in_v, i64 %stride_in_v, ptr %in_a, i64 %stride_in_a, ptr %out_inverse_dynamics, i64 %stride_out_inverse_dynamics) nounwind {
  %few = icmp ult i64 %n, 4
  br i1 %few, label %some, label %begin
begin:
  %ws = alloca [128 x i8], align 64
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
  %b2.o = mul i64 %row, %stride_in_a
  %b2 = getelementptr i8, ptr %in_a, i64 %b2.o
  %b3.o = mul i64 %row, %stride_out_inverse_dynamics
  %b3 = getelementptr i8, ptr %out_inverse_dynamics, i64 %b3.o
  %bad = call i64 @block(ptr %ws, ptr %b0, ptr %b1, ptr %b2, ptr %b3, i64 %stride_in_q, i64 %stride_in_v, i64 %stride_in_a, i64 %stride_out_inverse_dynamics)
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
  %s2.o = mul i64 %k, %stride_in_a
  %s2 = getelementptr i8, ptr %in_a, i64 %s2.o
  %s3.o = mul i64 %k, %stride_out_inverse_dynamics
  %s3 = getelementptr i8, ptr %out_inverse_dynamics, i64 %s3.o
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
