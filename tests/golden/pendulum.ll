; pendulum.forward_dynamics: 2 operations, 4 lanes of float64
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
  %p2 = getelementptr i8, ptr %ws, i64 32
  store double %x1, ptr %p2, align 8
  %p3 = getelementptr i8, ptr %ws, i64 40
  store double zeroinitializer, ptr %p3, align 8
  %p4 = getelementptr i8, ptr %ws, i64 48
  store double zeroinitializer, ptr %p4, align 8
  %p5 = getelementptr i8, ptr %ws, i64 56
  store double zeroinitializer, ptr %p5, align 8
  %p6 = getelementptr i8, ptr %ws, i64 32
  %p7 = getelementptr i8, ptr %ws, i64 64
  %p8 = getelementptr i8, ptr %ws, i64 96
  call void @sincos(ptr %p6, ptr %p7, ptr %p8, i64 1)
  %x9 = load double, ptr %in_tau, align 8
  %p10 = getelementptr i8, ptr %ws, i64 64
  %x11 = load double, ptr %p10, align 8
  %t12 = fneg double %x11
  %v13 = call double @llvm.fma.f64(double 0x40239EB851EB851F, double %t12, double %x9)
  store double %v13, ptr %out_forward_dynamics, align 8
  %x14 = load double, ptr %in_v, align 8
  %t15 = fadd double %v13, %x14
  store double %t15, ptr %ws, align 8
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
  %x3 = load <1 x double>, ptr %p2, align 8
  %t4 = mul i64 %stride_in_q, 1
  %p5 = getelementptr i8, ptr %in_q, i64 %t4
  %x6 = load <1 x double>, ptr %p5, align 8
  %t7 = mul i64 %stride_in_q, 2
  %p8 = getelementptr i8, ptr %in_q, i64 %t7
  %x9 = load <1 x double>, ptr %p8, align 8
  %t10 = mul i64 %stride_in_q, 3
  %p11 = getelementptr i8, ptr %in_q, i64 %t10
  %x12 = load <1 x double>, ptr %p11, align 8
  %s13 = shufflevector <1 x double> %x3, <1 x double> %x6, <2 x i32> <i32 0, i32 1>
  %s14 = shufflevector <1 x double> %x9, <1 x double> %x12, <2 x i32> <i32 0, i32 1>
  %s15 = shufflevector <2 x double> %s13, <2 x double> %s14, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %p16 = getelementptr i8, ptr %ws, i64 32
  store <4 x double> %s15, ptr %p16, align 32
  %p17 = getelementptr i8, ptr %ws, i64 32
  %p18 = getelementptr i8, ptr %ws, i64 64
  %p19 = getelementptr i8, ptr %ws, i64 96
  call void @sincos(ptr %p17, ptr %p18, ptr %p19, i64 1)
  %t20 = mul i64 %stride_in_tau, 0
  %p21 = getelementptr i8, ptr %in_tau, i64 %t20
  %x22 = load <1 x double>, ptr %p21, align 8
  %t23 = mul i64 %stride_in_tau, 1
  %p24 = getelementptr i8, ptr %in_tau, i64 %t23
  %x25 = load <1 x double>, ptr %p24, align 8
  %t26 = mul i64 %stride_in_tau, 2
  %p27 = getelementptr i8, ptr %in_tau, i64 %t26
  %x28 = load <1 x double>, ptr %p27, align 8
  %t29 = mul i64 %stride_in_tau, 3
  %p30 = getelementptr i8, ptr %in_tau, i64 %t29
  %x31 = load <1 x double>, ptr %p30, align 8
  %s32 = shufflevector <1 x double> %x22, <1 x double> %x25, <2 x i32> <i32 0, i32 1>
  %s33 = shufflevector <1 x double> %x28, <1 x double> %x31, <2 x i32> <i32 0, i32 1>
  %s34 = shufflevector <2 x double> %s32, <2 x double> %s33, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %p35 = getelementptr i8, ptr %ws, i64 64
  %x36 = load <4 x double>, ptr %p35, align 32
  %t37 = fneg <4 x double> %x36
  %v38 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x40239EB851EB851F), <4 x double> %t37, <4 x double> %s34)
  %s39 = shufflevector <4 x double> %v38, <4 x double> poison, <1 x i32> <i32 0>
  %t40 = mul i64 %stride_out_forward_dynamics, 0
  %p41 = getelementptr i8, ptr %out_forward_dynamics, i64 %t40
  store <1 x double> %s39, ptr %p41, align 8
  %s42 = shufflevector <4 x double> %v38, <4 x double> poison, <1 x i32> <i32 1>
  %t43 = mul i64 %stride_out_forward_dynamics, 1
  %p44 = getelementptr i8, ptr %out_forward_dynamics, i64 %t43
  store <1 x double> %s42, ptr %p44, align 8
  %s45 = shufflevector <4 x double> %v38, <4 x double> poison, <1 x i32> <i32 2>
  %t46 = mul i64 %stride_out_forward_dynamics, 2
  %p47 = getelementptr i8, ptr %out_forward_dynamics, i64 %t46
  store <1 x double> %s45, ptr %p47, align 8
  %s48 = shufflevector <4 x double> %v38, <4 x double> poison, <1 x i32> <i32 3>
  %t49 = mul i64 %stride_out_forward_dynamics, 3
  %p50 = getelementptr i8, ptr %out_forward_dynamics, i64 %t49
  store <1 x double> %s48, ptr %p50, align 8
  %t51 = mul i64 %stride_in_v, 0
  %p52 = getelementptr i8, ptr %in_v, i64 %t51
  %x53 = load <1 x double>, ptr %p52, align 8
  %t54 = mul i64 %stride_in_v, 1
  %p55 = getelementptr i8, ptr %in_v, i64 %t54
  %x56 = load <1 x double>, ptr %p55, align 8
  %t57 = mul i64 %stride_in_v, 2
  %p58 = getelementptr i8, ptr %in_v, i64 %t57
  %x59 = load <1 x double>, ptr %p58, align 8
  %t60 = mul i64 %stride_in_v, 3
  %p61 = getelementptr i8, ptr %in_v, i64 %t60
  %x62 = load <1 x double>, ptr %p61, align 8
  %s63 = shufflevector <1 x double> %x53, <1 x double> %x56, <2 x i32> <i32 0, i32 1>
  %s64 = shufflevector <1 x double> %x59, <1 x double> %x62, <2 x i32> <i32 0, i32 1>
  %s65 = shufflevector <2 x double> %s63, <2 x double> %s64, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %t66 = fadd <4 x double> %v38, %s65
  store <4 x double> %t66, ptr %ws, align 32
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
