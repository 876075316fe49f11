
C
xPlaceholder*
dtype0*$
shape:ÿÿÿÿÿÿÿÿÿ
2
	LeakyRelu	LeakyRelux*
T0*
alpha%ÍÌL>
!
yIdentity	LeakyRelu*
T0
 
IdentityIdentityy*
T0"Ñ