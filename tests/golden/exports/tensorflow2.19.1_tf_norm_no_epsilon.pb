
;
xPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
Q
norm/Sum/reduction_indicesConst*
dtype0*
valueB:
ÿÿÿÿÿÿÿÿÿ

norm/mulMulxx*
T0
[
norm/SumSumnorm/mulnorm/Sum/reduction_indices*

Tidx0*
T0*
	keep_dims(
$
	norm/SqrtSqrtnorm/Sum*
T0
)
truedivRealDivx	norm/Sqrt*
T0

yIdentitytruediv*
T0
 
IdentityIdentityy*
T0"Ñ